// Checks on one announced tensor that need no context. Internal to the codec.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cipherd/v1/value.pb.h"
#include "core/value/tensor.h"
#include "proto/codec/tensor_plan.h"
#include "proto/codec/wire_limits.h"

namespace cipherd::codec::internal {

// Number of dimensions and declared bytes.
absl::Status CheckTensorCaps(const v1::Tensor& message, uint64_t max_bytes,
                             const WireLimits& limits, std::string_view path);

// Dtype and encoding; the rest is copied. Packed and seeded encodings are UNSUPPORTED: a build that
// has them gives the plan an encoding of its own, and its payload reader expands.
absl::StatusOr<TensorPlan> ReadTensorSchema(const v1::Tensor& message, std::string_view path);

// Every dimension is at least `least_dimension`, and their product times the element size is the
// declared byte count. Overflow is a mismatch, never a size.
absl::Status CheckByteCount(const TensorPlan& plan, int64_t least_dimension);

// A tensor with the dtype and shape of `plan` over a storage that has the size and no memory: it
// stands in trees whose signature is wanted before memory is given out. Its data() is null.
value::Tensor AnnouncedTensor(const TensorPlan& plan);

}  // namespace cipherd::codec::internal
