// One tensor that a peer announced and that was admitted: what to allocate for it, and what its
// bytes must satisfy.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/runtime/device.h"
#include "core/value/tensor.h"

namespace cipherd::codec {

struct TensorPlan {
  // "inputs[0].data"
  std::string path;
  value::DType dtype = value::DType::kUint64;
  std::vector<int64_t> shape;
  bool requires_grad = false;
  // Bytes in the payload; with the canonical encoding those of the tensor, too.
  uint64_t byte_count = 0;
  // Where the elements are residues, [.., limb, coefficient]: the prime of each limb. Else empty.
  std::vector<uint64_t> limb_primes;
};

// Gives the contiguous host tensor that the payload of `plan` is read into: dtype and shape are
// the plan's. Called once a tensor, in payload order.
using TensorAllocator = std::function<absl::StatusOr<value::Tensor>(const TensorPlan& plan)>;

// A tensor of its own each: pageable, or page-locked by `device`, which outlives the allocator.
TensorAllocator PageableTensors();
TensorAllocator PinnedTensors(runtime::Device& device);

}  // namespace cipherd::codec
