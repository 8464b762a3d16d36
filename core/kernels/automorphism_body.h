// Where the entries of a(X^g) come from.
#pragma once

#include <cstdint>

#include "core/math/host_device.h"
#include "core/ring/galois.h"

namespace cipherd::kernels {

// NTT domain: entry i of the result is entry ring::AutomorphismNttSource(i, g, log_n) of the
// source.
using ring::AutomorphismNttSource;
using ring::AutomorphismNttSources;

struct SignedIndex {
  uint32_t index;
  bool negate;
};

// Coefficient domain: which coefficient of a, and with which sign, is coefficient i of a(X^g).
// Requires i < N and g_inverse = g^-1 mod 2N.
CIPHERD_HD SignedIndex AutomorphismCoefficientSource(uint32_t i, uint32_t g_inverse, int log_n) {
  // X^j becomes X^(j·g), and X^N = -1: with k = i / g mod 2N, coefficient k arrives where k < N,
  // and otherwise coefficient k - N, through X^(k·g - N·g) = -X^i.
  const uint32_t n = uint32_t{1} << log_n;
  const uint32_t k = (i * g_inverse) & (2 * n - 1);
  return {k & (n - 1), k >= n};
}

// Returns `word`, or its negative modulo q.
template <class A>
CIPHERD_HD uint64_t AutomorphismCoefficientEntry(uint64_t word, bool negate,
                                                 const typename A::Modulus& m) {
  return negate ? A::ToWord(A::Negate(A::FromWord(word), m)) : word;
}

}  // namespace cipherd::kernels
