// Whether constants are what operations take them for. Internal to the checker.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/programs/operation_rules.h"

namespace cipherd::programs::internal {

// The scale that a constant which multiplies an edge of state `a` is encoded at: what the operation
// states, or what gives its result the scale that it states, or the product of the primes that the
// next rescale drops. InvalidArgument at the last depth, where there are none.
absl::StatusOr<double> MultiplierScale(const Operation& operation,
                                       const ckks::ContextParameters& parameters,
                                       const EdgeState& a);

// `operation.constant` exists, is a float [length], fits the slots when expanded, and can be
// encoded at `depth` and `scale`: finite, and no more than a quarter of the modulus.
absl::Status CheckSlotConstant(const Operation& operation, const Inference& inference, int depth,
                               double scale);

// `operation.constant` is a float [count, length] of the same properties, and `operation.offsets`
// an int64 [count], which is returned.
absl::StatusOr<std::vector<int64_t>> CheckDiagonals(const Operation& operation,
                                                    const Inference& inference, int depth,
                                                    double scale);

}  // namespace cipherd::programs::internal
