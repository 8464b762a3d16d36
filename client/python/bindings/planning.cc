#include "client/python/bindings/planning.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/planning/local_program.h"
#include "client/planning/model_planner.h"
#include "client/planning/program_directory.h"
#include "client/planning/schedule_report.h"
#include "client/python/bindings/arrays.h"
#include "client/python/bindings/interruptible.h"
#include "client/python/bindings/live_calls.h"
#include "client/python/bindings/status_error.h"
#include "core/base/status_macros.h"
#include "proto/codec/model_codec.h"

namespace cipherd::python {
namespace {

namespace nb = nanobind;

// In any shape; the package's Python side has made them so.
using NumberArray = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using IndexArray = nb::ndarray<const int64_t, nb::c_contig, nb::device::cpu>;

// A program with the device that it was measured on, and once it is evaluated, its keys.
class Planned {
 public:
  Planned(std::unique_ptr<runtime::Device> device, client::PlannedModel model)
      : owner(std::make_shared<CallOwner>("planned program", nullptr)),
        model(std::move(model)),
        device_(std::move(device)) {}

  const programs::CheckedProgram& program() const { return *model.program; }

  // One caller after another; the first one makes keys.
  absl::StatusOr<client::NamedVectors> Evaluate(const client::NamedVectors& inputs) {
    absl::MutexLock lock(&mu_);
    if (local_ == nullptr) {
      CIPHERD_ASSIGN_OR_RETURN(local_, client::LocalProgram::Make(model.program, *device_));
    }
    return local_->Evaluate(inputs);
  }

  const std::shared_ptr<CallOwner> owner;
  const client::PlannedModel model;

 private:
  const std::unique_ptr<runtime::Device> device_;
  absl::Mutex mu_;
  std::unique_ptr<client::LocalProgram> local_ ABSL_GUARDED_BY(mu_);
};

// Copies.
template <typename Array>
void AddTensors(const std::map<std::string, Array>& arrays, value::DType dtype,
                programs::Constants& constants) {
  for (const auto& [name, array] : arrays) {
    std::vector<int64_t> shape;
    for (size_t axis = 0; axis < array.ndim(); ++axis) {
      shape.push_back(static_cast<int64_t>(array.shape(axis)));
    }
    value::Tensor tensor = ValueOrThrow(value::Tensor::AllocateHost(dtype, std::move(shape)));
    if (array.nbytes() > 0) std::memcpy(tensor.data(), array.data(), array.nbytes());
    constants.emplace(name, std::move(tensor));
  }
}

std::unique_ptr<Planned> PlanModel(const std::string& model_json,
                                   const std::map<std::string, NumberArray>& numbers,
                                   const std::map<std::string, IndexArray>& indices,
                                   const InputArrays& samples, const std::string& device_name,
                                   double max_error, double margin, int64_t encrypted_samples,
                                   int64_t min_items, std::optional<int> log2_scale,
                                   int max_log_n) {
  planning::Model model = ValueOrThrow(codec::ModelFromJson(model_json, "model"));
  programs::Constants constants;
  AddTensors(numbers, value::DType::kFloat64, constants);
  AddTensors(indices, value::DType::kInt64, constants);
  ThrowIfError(codec::AddConstants(std::move(constants), model));
  planning::TensorBatch batch;
  for (auto& [name, vectors] : ToVectors(samples)) batch[name] = std::move(vectors);

  client::ModelPlanOptions options;
  options.plan.max_error = max_error;
  options.plan.min_item_count = min_items;
  options.plan.log2_scale = log2_scale;
  options.plan.max_log_n = max_log_n;
  options.magnitude_margin = margin;
  options.encrypted_sample_count = encrypted_samples;
  return RunCall(std::make_shared<CallOwner>("planner", nullptr),
                 [&](const auto&) -> absl::StatusOr<std::unique_ptr<Planned>> {
                   CIPHERD_ASSIGN_OR_RETURN(std::unique_ptr<runtime::Device> device,
                                            runtime::OpenDevice(device_name, {}));
                   CIPHERD_ASSIGN_OR_RETURN(
                       client::PlannedModel planned,
                       client::PlanModel(model, std::move(batch), *device, options));
                   return std::make_unique<Planned>(std::move(device), std::move(planned));
                 });
}

OutputArrays Evaluate(Planned& planned, const InputArrays& inputs) {
  const client::NamedVectors vectors = ToVectors(inputs);
  return ToArrays(RunCall(planned.owner, [&](const auto&) { return planned.Evaluate(vectors); }));
}

// largest, root_mean_square, element_count
std::map<std::string, std::tuple<double, double, int64_t>> Errors(const Planned& planned) {
  std::map<std::string, std::tuple<double, double, int64_t>> errors;
  for (const programs::ProgramOutput& output : planned.program().spec.outputs) {
    errors[output.name] = {output.errors.largest, output.errors.root_mean_square,
                           output.errors.element_count};
  }
  return errors;
}

std::vector<std::string> RequiredKeys(const Planned& planned) {
  std::vector<std::string> names;
  for (const ckks::KeyId& id : planned.program().keys.ids()) names.push_back(id.ToString());
  return names;
}

}  // namespace

void BindPlanning(nb::module_& module) {
  nb::class_<Planned>(module, "PlannedModel")
      .def_prop_ro("summary",
                   [](const Planned& self) {
                     return client::FormatSummary(self.program(), self.model.predicted);
                   })
      .def_prop_ro("schedule",
                   [](const Planned& self) {
                     return client::FormatSchedule(self.program(), self.model.predicted);
                   })
      .def_prop_ro("graph",
                   [](const Planned& self) {
                     return client::ScheduleGraph(self.program(), self.model.predicted);
                   })
      .def_prop_ro("errors", &Errors)
      .def_prop_ro("estimated_error",
                   [](const Planned& self) { return self.model.estimated_error; })
      .def_prop_ro("measured_error", [](const Planned& self) { return self.model.measured_error; })
      .def_prop_ro("sample_count", [](const Planned& self) { return self.model.sample_count; })
      .def_prop_ro("predicted_seconds",
                   [](const Planned& self) { return self.model.predicted.total_seconds(); })
      .def_prop_ro("measured_seconds",
                   [](const Planned& self) { return self.model.measured_seconds; })
      .def_prop_ro("item_count", [](const Planned& self) { return self.model.item_count; })
      .def_prop_ro("required_keys", &RequiredKeys)
      .def_prop_ro("key_bytes", [](const Planned& self) { return self.program().key_bytes(); })
      .def_prop_ro("input_bytes", [](const Planned& self) { return self.program().input_bytes(); })
      .def_prop_ro("output_bytes",
                   [](const Planned& self) { return self.program().output_bytes(); })
      .def_prop_ro("constant_bytes",
                   [](const Planned& self) { return self.program().constant_bytes(); })
      .def_prop_ro("largest_constant_bytes",
                   [](const Planned& self) { return self.program().largest_constant_bytes(); })
      .def("evaluate", &Evaluate, nb::arg("inputs"))
      .def(
          "write",
          [](const Planned& self, const std::string& directory) {
            ThrowIfError(client::WriteProgramDirectory(directory, self.program()));
          },
          nb::arg("directory"));
  module.def("plan_model", &PlanModel, nb::arg("model_json"), nb::arg("numbers"),
             nb::arg("indices"), nb::arg("samples"), nb::arg("device"), nb::arg("max_error"),
             nb::arg("margin"), nb::arg("encrypted_samples"), nb::arg("min_items"),
             nb::arg("log2_scale").none(), nb::arg("max_log_n"));
}

}  // namespace cipherd::python
