// Whether a model can be computed, and the shapes of its edges.
//
//   CIPHERD_ASSIGN_OR_RETURN(ModelShapes shapes, CheckModel(model));
//   shapes.at("logits")   // [10]
//
// A mismatch names the operation, what is there, what is expected and what mends it:
//   model 'mlp', operation 'fc1': linear: weight 'w1' has shape [784, 64], but 'x' has 784 numbers,
//   so [out, 784] is expected; it looks transposed
#pragma once

#include "absl/status/statusor.h"
#include "core/planning/model.h"

namespace cipherd::planning {

// InvalidArgument as above; also for: bad or duplicate names, operands that are not made before,
// constants that are missing, of a wrong dtype or not finite, edges of more than kMaxElements
// numbers, bounds and ranges that are none, outputs that are inputs, no inputs, operations or
// outputs, edges that nothing reads. Thread-safe.
absl::StatusOr<ModelShapes> CheckModel(const Model& model);

}  // namespace cipherd::planning
