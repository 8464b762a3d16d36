// Host memory that is overwritten before it goes back to where it came from.
//
//   CIPHERD_ASSIGN_OR_RETURN(value::Tensor keys, value::Tensor::AllocatePinned(...));
//   CIPHERD_ASSIGN_OR_RETURN(keys, WipedTensor(std::move(keys)));
//
// The thread of the last owner does so, at the speed of memory: owners are let go where that does
// not hold up others. Whoever has the device read the bytes is an owner until that is done.
#pragma once

#include "absl/status/statusor.h"
#include "core/value/tensor.h"

namespace cipherd::engine {

// The same tensor, which must be contiguous and the only owner of its storage in host memory
// (InvalidArgument).
absl::StatusOr<value::Tensor> WipedTensor(value::Tensor tensor);

}  // namespace cipherd::engine
