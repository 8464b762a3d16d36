// plan: from a model to the directory of a program, with its precision and time measured.
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/ctl/commands.h"
#include "client/files/vector_file.h"
#include "client/planning/model_planner.h"
#include "client/planning/program_directory.h"
#include "client/planning/schedule_report.h"
#include "core/base/status_macros.h"
#include "core/programs/input_file.h"
#include "core/programs/safetensors.h"
#include "core/runtime/device.h"
#include "proto/codec/model_codec.h"

namespace cipherd::client {
namespace {

constexpr int64_t kMaxModelBytes = int64_t{4} << 20;
constexpr int64_t kMaxConstantsBytes = int64_t{1} << 30;

struct Flags {
  std::string model;
  std::vector<std::string> samples;
  std::string output;
  std::string device = "cpu";
  ModelPlanOptions options;
  int log2_scale = 0;
  bool show_schedule = false;
};

// The model's text, and its constants from beside it.
absl::StatusOr<planning::Model> ReadModel(const std::string& path) {
  CIPHERD_ASSIGN_OR_RETURN(const std::string text, programs::ReadTextFile(path, kMaxModelBytes));
  const bool is_json = std::filesystem::path(path).extension() == ".json";
  CIPHERD_ASSIGN_OR_RETURN(planning::Model model, is_json ? codec::ModelFromJson(text, path)
                                                          : codec::ParseModelText(text, path));
  if (model.constants_file.empty()) return model;
  const std::filesystem::path file =
      std::filesystem::path(path).parent_path() / model.constants_file;
  CIPHERD_ASSIGN_OR_RETURN(programs::Constants constants,
                           programs::ReadSafetensors(file.string(), kMaxConstantsBytes));
  CIPHERD_RETURN_IF_ERROR(codec::AddConstants(std::move(constants), model));
  return model;
}

// NAME=FILE, as often as there are inputs.
absl::StatusOr<planning::TensorBatch> ReadSamples(const std::vector<std::string>& flags) {
  planning::TensorBatch samples;
  for (const std::string& flag : flags) {
    const size_t equals = flag.find('=');
    if (equals == 0 || equals == std::string::npos) {
      return absl::InvalidArgumentError(
          absl::StrCat("--samples: expected NAME=FILE, got '", flag, "'"));
    }
    CIPHERD_ASSIGN_OR_RETURN(samples[flag.substr(0, equals)], ReadVectors(flag.substr(equals + 1)));
  }
  return samples;
}

std::string FormatMeasured(const PlannedModel& planned) {
  return absl::StrFormat(
      "errors up to %.2g over %d samples (estimated: %.2g); an evaluation took %.2f ms "
      "(predicted: %.2f ms), %d items at once\n",
      planned.measured_error, planned.sample_count, planned.estimated_error,
      planned.measured_seconds * 1e3, planned.predicted.total_seconds() * 1e3, planned.item_count);
}

absl::Status PlanAndWrite(Flags& flags) {
  if (flags.log2_scale != 0) flags.options.plan.log2_scale = flags.log2_scale;
  CIPHERD_ASSIGN_OR_RETURN(const planning::Model model, ReadModel(flags.model));
  if (!flags.output.empty()) {
    // Before all the work.
    CIPHERD_RETURN_IF_ERROR(CheckProgramDirectory(flags.output, model.name, model.version));
  }
  CIPHERD_ASSIGN_OR_RETURN(planning::TensorBatch samples, ReadSamples(flags.samples));
  CIPHERD_ASSIGN_OR_RETURN(const std::unique_ptr<runtime::Device> device,
                           runtime::OpenDevice(flags.device, {}));
  CIPHERD_ASSIGN_OR_RETURN(const PlannedModel planned,
                           PlanModel(model, std::move(samples), *device, flags.options));
  for (const planning::RangeExcess& excess : planned.range_excesses) {
    std::cerr << "cipherctl: note: " << excess.ToString() << "\n";
  }
  std::cout << FormatSummary(*planned.program, planned.predicted) << FormatMeasured(planned);
  if (flags.show_schedule) {
    std::cout << "\n" << FormatSchedule(*planned.program, planned.predicted);
  }
  if (!flags.options.plan.log2_scale && planned.measured_error > flags.options.plan.max_error) {
    return absl::ResourceExhaustedError(absl::StrFormat(
        "--max-error: expected at least %.2g, which was measured, got %.2g; nothing "
        "was written",
        planned.measured_error, flags.options.plan.max_error));
  }
  if (flags.output.empty()) return absl::OkStatus();
  CIPHERD_RETURN_IF_ERROR(WriteProgramDirectory(flags.output, *planned.program));
  std::cout << "wrote " << flags.output << "\n";
  return absl::OkStatus();
}

}  // namespace

void AddPlanCommand(CLI::App& app, absl::Status& status) {
  auto flags = std::make_shared<Flags>();
  ModelPlanOptions& options = flags->options;
  CLI::App* command = app.add_subcommand("plan",
                                         "Make a program of a model: choose packing, context, keys "
                                         "and schedule, measure precision and "
                                         "time on encrypted samples; no daemon");
  command->add_option("model", flags->model, "Model: text of cipherd.v1.Model, or .json")
      ->required();
  command->add_option("--output", flags->output,
                      "Directory to write, called as the model or its version (default: none)");
  command->add_option("--samples", flags->samples,
                      "NAME=FILE, for each input: vectors (.csv, .json, .npy) that magnitudes and "
                      "errors are measured over (default: 64 made within the inputs' bounds)");
  command
      ->add_option("--encrypted-samples", options.encrypted_sample_count,
                   "Samples that are encrypted, at most")
      ->capture_default_str();
  command
      ->add_option("--max-error", options.plan.max_error, "Absolute error that outputs are to keep")
      ->capture_default_str();
  command->add_option("--log2-scale", flags->log2_scale,
                      "Scale, in place of what --max-error asks for");
  command
      ->add_option("--margin", options.magnitude_margin,
                   "Values may become so many times as large as over the samples, and ranges of "
                   "inputs so many times as wide")
      ->capture_default_str();
  command->add_option("--min-items", options.plan.min_item_count, "Items of a ciphertext, at least")
      ->capture_default_str();
  command->add_option("--max-log-n", options.plan.max_log_n, "Largest ring degree, as a power of 2")
      ->capture_default_str();
  command->add_option("--device", flags->device, "Device to measure on: cpu, cuda:N or auto")
      ->capture_default_str();
  command->add_flag("--schedule", flags->show_schedule, "Print every operation");
  command->callback([flags, &status] { status = PlanAndWrite(*flags); });
}

}  // namespace cipherd::client
