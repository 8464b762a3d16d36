// One entry of the inner product of digits with a key-switching key.
#pragma once

#include <cstdint>

#include "core/math/host_device.h"

namespace cipherd::kernels {

// Sums digit · key over digits, for the two components of a key, and reduces once.
template <class A>
class KeyInnerProduct {
 public:
  // Takes words that are canonical residues; at most kMaxProductTerms times.
  CIPHERD_HD void Add(uint64_t digit, uint64_t key0, uint64_t key1) {
    A::AddWordsToSum(digit, key0, sum0_);
    A::AddWordsToSum(digit, key1, sum1_);
  }
  // Adds word · scalar, canonical both, to component 0; once, beside at most kMaxProductTerms - 1
  // digits.
  CIPHERD_HD void AddToComponent0(uint64_t word, uint64_t scalar) {
    A::AddWordsToSum(word, scalar, sum0_);
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
