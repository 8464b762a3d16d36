// From a model to a program whose precision and time have been measured.
//
//   CIPHERD_ASSIGN_OR_RETURN(PlannedModel planned, PlanModel(model, samples, *device, {}));
//   CIPHERD_RETURN_IF_ERROR(WriteProgramDirectory("programs/iris", *planned.program));
//
// The model is lowered to a circuit, the circuit planned (core/planning), each operation measured
// on `device`, and the program evaluated there on encrypted samples (local_program.h). What
// decrypts is compared with the model in float64, and the errors stand in the program's outputs.
// Where they are larger than what was asked for, it is planned again with a larger scale, as long
// as that halves them.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/planning/model.h"
#include "core/planning/model_ranges.h"
#include "core/planning/model_twin.h"
#include "core/planning/operation_costs.h"
#include "core/planning/plan.h"
#include "core/programs/program_checker.h"
#include "core/runtime/device.h"

namespace cipherd::client {

struct ModelPlanOptions {
  planning::PlanOptions plan;
  // Values may become so many times as large as over the samples, and ranges of inputs so many
  // times as wide: the program states both, and clients refuse what is beyond (planned_range.h).
  double magnitude_margin = 2;
  // Samples that are encrypted, the first ones; all count for magnitudes.
  int64_t encrypted_sample_count = 1024;
};

struct PlannedModel {
  std::shared_ptr<const programs::CheckedProgram> program;
  // Items of a ciphertext.
  int64_t item_count = 1;
  // The largest error of any output: estimated, and measured.
  double estimated_error = 0;
  double measured_error = 0;
  int64_t sample_count = 0;
  // Polynomials whose arguments leave, over the samples, the range that they are fitted over: there
  // the model itself is off.
  std::vector<planning::RangeExcess> range_excesses;
  // Of one evaluation: predicted, and the median of those of the samples.
  planning::OperationCosts predicted;
  double measured_seconds = 0;
};

// `samples` by input, an equal number of each; none: 64 are made within the inputs' bounds, from a
// fixed seed. InvalidArgument for a model that cannot be computed, samples that do not fit it, or
// an output that is not finite over them; ResourceExhausted where no context is large enough.
absl::StatusOr<PlannedModel> PlanModel(const planning::Model& model, planning::TensorBatch samples,
                                       runtime::Device& device, const ModelPlanOptions& options);

}  // namespace cipherd::client
