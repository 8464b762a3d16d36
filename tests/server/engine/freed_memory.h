// Memory that was let go, as its next owner finds it.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "core/value/tensor.h"
#include "gtest/gtest.h"

namespace cipherd::engine::testing {

// A tensor at `address`, which is free: `allocate` is asked for tensors of one size until it gives
// that one.
template <typename Allocate>
value::Tensor TakeAt(const void* address, const Allocate& allocate) {
  std::vector<value::Tensor> others;
  for (int i = 0; i < 4096; ++i) {
    absl::StatusOr<value::Tensor> taken = allocate();
    if (!taken.ok()) break;
    if (taken->data() == address) return *taken;
    others.push_back(*taken);
  }
  ADD_FAILURE() << "the memory is not handed out";
  return others.front();
}

}  // namespace cipherd::engine::testing
