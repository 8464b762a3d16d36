// From a circuit to a program that a daemon serves.
//
//   CIPHERD_ASSIGN_OR_RETURN(Plan plan, MakePlan(circuit, magnitudes, {.max_error = 1e-4}));
//   plan.program->keys, plan.program->key_bytes()   // what a client makes and sends
//   plan.item_count                                 // items that share a ciphertext
//
// Chooses, in this order: the depth of every edge (depth_plan.h), baby spans (span_choice.h), the
// least scale whose errors are small enough (error_estimate.h) with the smallest secure context
// for it (context_choice.h), its base prime as large as that context holds for nothing, so that
// results that outgrow their magnitude_bound show (client/planned_range.h), and the operations in
// between (placement.h). The result has passed CheckProgram. Deterministic.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "core/planning/circuit.h"
#include "core/planning/error_estimate.h"
#include "core/programs/program_checker.h"

namespace cipherd::planning {

struct PlanOptions {
  // Absolute error that outputs are to keep, as EstimateError has it.
  double max_error = 1e-4;
  // Where it is set, of the default scale, and max_error is not looked at.
  std::optional<int> log2_scale;
  // Ring degrees that are tried, 2^12 to 2^17.
  int min_log_n = 12;
  int max_log_n = 16;
  // At least so many items in a ciphertext.
  int64_t min_item_count = 1;
  // Of the program.
  std::string constants_file = "constants.safetensors";
};

struct Plan {
  std::shared_ptr<const programs::CheckedProgram> program;
  int64_t item_count = 1;
  // EstimateError of the context.
  double estimated_error = 0;
};

// `magnitudes` of every edge of the circuit. InvalidArgument from CheckCircuit or for an option out
// of range; ResourceExhausted where no context is large enough.
absl::StatusOr<Plan> MakePlan(const Circuit& circuit, const EdgeMagnitudes& magnitudes,
                              const PlanOptions& options);

}  // namespace cipherd::planning
