// How large the errors of a circuit's outputs are expected to be, before anything is encrypted.
//
//   const ErrorModel model{.log_n = 14, .log2_scale = 42, .digit_count = 2};
//   CIPHERD_ASSIGN_OR_RETURN(double error, EstimateError(circuit, magnitudes, model));
//
// Standard deviations, carried from edge to edge: of the errors of fresh encryption, of every
// rounding by a rescale or a key switch, and of encoded constants; independent errors add by their
// squares. An estimate, with the assumptions of the average case (Costache, Curtis, Hales, Murphy,
// Ogilvie, Player, "On the precision loss in approximate homomorphic encryption", SAC 2023); what a
// plan promises is measured on encrypted samples.
#pragma once

#include "absl/status/statusor.h"
#include "core/planning/circuit.h"
#include "core/planning/edge_magnitudes.h"

namespace cipherd::planning {

struct ErrorModel {
  int log_n = 0;
  // The scale of every depth, nearly.
  double log2_scale = 0;
  // Key-switching digits at depth 0, and log2 of the largest digit's product over P's.
  int digit_count = 1;
  double log2_digit_over_p = 0;
};

// Of the output with the largest: kErrorDeviations deviations, which hardly any slot exceeds.
// `circuit` has passed CheckCircuit; `magnitudes` has every edge, else NotFound naming it.
inline constexpr double kErrorDeviations = 6;
absl::StatusOr<double> EstimateError(const Circuit& circuit, const EdgeMagnitudes& magnitudes,
                                     const ErrorModel& model);

}  // namespace cipherd::planning
