// One entry of the sums of rotated ciphertexts (rotation_sums.h).
#pragma once

#include <cstdint>

#include "core/math/host_device.h"

namespace cipherd::kernels {

// The two components of one sum of rotations times factors. Takes words that are canonical
// residues, at most kMaxProductTerms pairs with the initial one, and reduces once.
template <class A>
class FactorSum {
 public:
  // What the sum begins with.
  CIPHERD_HD void Begin(uint64_t word0, uint64_t word1) { Add(word0, word1, 1); }
  CIPHERD_HD void Add(uint64_t rotation0, uint64_t rotation1, uint64_t factor) {
    A::AddWordsToSum(rotation0, factor, sum0_);
    A::AddWordsToSum(rotation1, factor, sum1_);
  }
  CIPHERD_HD uint64_t Component0(const typename A::Modulus& m) const {
    return A::ToWord(A::ReduceSum(sum0_, m));
  }
  CIPHERD_HD uint64_t Component1(const typename A::Modulus& m) const {
    return A::ToWord(A::ReduceSum(sum1_, m));
  }

 private:
  typename A::ProductSum sum0_{};
  typename A::ProductSum sum1_{};
};

}  // namespace cipherd::kernels
