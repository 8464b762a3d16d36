#include "client/python/bindings/program.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "client/python/bindings/status_error.h"
#include "client/request_split.h"

namespace cipherd::python {
namespace {

namespace nb = nanobind;

// item_count, item_stride, element_count, element_stride
using Layout = std::tuple<int64_t, int64_t, int64_t, int64_t>;

Layout ToTuple(const programs::SlotLayout& layout) {
  return {layout.item_count, layout.item_stride, layout.element_count, layout.element_stride};
}

// name, description, layout, depth, scale, lower, upper
using Input = std::tuple<std::string, std::string, Layout, int, double, double, double>;

std::vector<Input> Inputs(const Program& program) {
  std::vector<Input> inputs;
  for (const programs::ProgramInput& input : program.description().inputs) {
    inputs.emplace_back(input.name, input.description, ToTuple(input.layout), input.depth,
                        input.scale, input.lower, input.upper);
  }
  return inputs;
}

// name, description, layout, magnitude_bound
std::vector<std::tuple<std::string, std::string, Layout, double>> Outputs(const Program& program) {
  std::vector<std::tuple<std::string, std::string, Layout, double>> outputs;
  for (const programs::ProgramOutput& output : program.description().outputs) {
    outputs.emplace_back(output.name, output.description, ToTuple(output.layout),
                         output.magnitude_bound);
  }
  return outputs;
}

std::vector<std::string> RequiredKeys(const Program& program) {
  std::vector<std::string> names;
  for (const ckks::KeyId& id : program.description().required_keys.ids()) {
    names.push_back(id.ToString());
  }
  return names;
}

Program Load(const std::string& path, bool allow_insecure_contexts) {
  const ckks::SecurityPolicy policy = PolicyOf(allow_insecure_contexts);
  return {ValueOrThrow(client::ReadStoredProgram(path, policy)), policy};
}

void Save(const Program& program, const std::string& path) {
  ThrowIfError(client::WriteProgramFile(path, program.stored.message,
                                        program.description().requested_version));
}

}  // namespace

void BindProgram(nb::module_& module) {
  nb::class_<Program>(module, "Program")
      .def_static("load", &Load, nb::arg("path"), nb::arg("allow_insecure_contexts"))
      .def("save", &Save, nb::arg("path"))
      .def_prop_ro("name", [](const Program& self) { return self.description().name; })
      .def_prop_ro("version", [](const Program& self) { return self.description().version; })
      .def_prop_ro("requested_version",
                   [](const Program& self) { return self.description().requested_version; })
      .def_prop_ro("description",
                   [](const Program& self) { return self.description().description; })
      .def_prop_ro("context_id",
                   [](const Program& self) { return self.description().context->id(); })
      .def_prop_ro("ring_degree",
                   [](const Program& self) {
                     return self.description().context->parameters().ring_degree();
                   })
      .def_prop_ro("inputs", &Inputs)
      .def_prop_ro("outputs", &Outputs)
      .def_prop_ro("items_per_request",
                   [](const Program& self) { return client::ItemsPerRequest(self.description()); })
      .def_prop_ro("required_keys", &RequiredKeys)
      .def_prop_ro("key_bytes", [](const Program& self) { return self.description().key_bytes; })
      .def_prop_ro("input_bytes",
                   [](const Program& self) { return self.description().input_bytes; })
      .def_prop_ro("output_bytes",
                   [](const Program& self) { return self.description().output_bytes; });
}

}  // namespace cipherd::python
