// What each kind of operation of a model asks of its operands and constants, and the shape of its
// result. Internal to model_check.h.
#pragma once

#include "absl/status/statusor.h"
#include "core/planning/model.h"

namespace cipherd::planning::internal {

// The shape of the result of `operation`, whose operands are in `shapes`. InvalidArgument saying
// what is off and what mends it.
absl::StatusOr<Shape> ApplyShapeRule(const ModelOperation& operation, const ModelShapes& shapes,
                                     const programs::Constants& constants);

}  // namespace cipherd::planning::internal
