// The transforms of one limb, word by word, with any arithmetic.
//
// Order of the passes: the words of a node are transformed two levels at a time until the blocks
// below fit half of a first-level cache; each block is then transformed to its end before the next
// one. The pass over the leaves takes two or three levels, whatever is left.
#pragma once

#include <cstdint>

#include "core/kernels/arithmetic_tables.h"
#include "core/kernels/ntt_body.h"
#include "core/math/host_device.h"
#include "core/ring/ring_tables.h"

namespace cipherd::kernels::host {

// Transforms of one limb. A node is given with its levels, that is with its 2^levels words.
template <class A>
class ScalarTransform {
 public:
  explicit ScalarTransform(const ring::PrimeConstants& prime)
      : prime_(prime), m_(ArithmeticTables<A>::Modulus(prime)) {}

  // Whole subtrees; `in` may be `out`. Require levels >= 4.
  void ForwardTree(int levels, const uint64_t* in, uint64_t* out) const {
    ForwardPass<Words::kCanonical>(kRoot, levels, in, out);
    for (uint32_t child = 0; child < 4; ++child) {
      ForwardBelow(4 * kRoot + child, levels - 2, out + (int64_t{child} << (levels - 2)));
    }
  }
  void InverseTree(int levels, const uint64_t* in, uint64_t* out) const {
    for (uint32_t child = 0; child < 4; ++child) {
      const int64_t offset = int64_t{child} << (levels - 2);
      InverseBelow(4 * kRoot + child, levels - 2, in + offset, out + offset);
    }
    InversePass<true>(kRoot, levels, out);
  }

 private:
  // Whether words in memory are canonical, or residues of a transform under way.
  enum class Words { kCanonical, kUnderWay };

  using Residue = typename A::Residue;
  using Modulus = typename A::Modulus;
  static constexpr uint32_t kRoot = 1;
  // 2^11 words are 16 KiB.
  static constexpr int kCachedLevels = 11;

  void ForwardBelow(uint32_t node, int levels, uint64_t* data) const {
    if (levels > kCachedLevels) {
      ForwardPass<Words::kUnderWay>(node, levels, data, data);
      for (uint32_t child = 0; child < 4; ++child) {
        ForwardBelow(4 * node + child, levels - 2, data + (int64_t{child} << (levels - 2)));
      }
      return;
    }
    int above = 0;
    for (; levels - above > 3; above += 2) {
      for (uint32_t g = 0; g < uint32_t{1} << above; ++g) {
        uint64_t* words = data + (int64_t{g} << (levels - above));
        ForwardPass<Words::kUnderWay>((node << above) + g, levels - above, words, words);
      }
    }
    for (uint32_t g = 0; g < uint32_t{1} << above; ++g) {
      const uint32_t last = (node << above) + g;
      if (levels - above == 2) {
        ForwardLeaves<2>(last, data + 4 * int64_t{g});
      } else {
        ForwardLeaves<3>(last, data + 8 * int64_t{g});
      }
    }
  }

  void InverseBelow(uint32_t node, int levels, const uint64_t* in, uint64_t* out) const {
    if (levels > kCachedLevels) {
      for (uint32_t child = 0; child < 4; ++child) {
        const int64_t offset = int64_t{child} << (levels - 2);
        InverseBelow(4 * node + child, levels - 2, in + offset, out + offset);
      }
      InversePass<false>(node, levels, out);
      return;
    }
    int above = levels % 2 == 0 ? levels - 2 : levels - 3;
    for (uint32_t g = 0; g < uint32_t{1} << above; ++g) {
      const uint32_t last = (node << above) + g;
      if (levels - above == 2) {
        InverseLeaves<2>(last, in + 4 * int64_t{g}, out + 4 * int64_t{g});
      } else {
        InverseLeaves<3>(last, in + 8 * int64_t{g}, out + 8 * int64_t{g});
      }
    }
    for (above -= 2; above >= 0; above -= 2) {
      for (uint32_t g = 0; g < uint32_t{1} << above; ++g) {
        InversePass<false>((node << above) + g, levels - above,
                           out + (int64_t{g} << (levels - above)));
      }
    }
  }

  // Two levels from `node` down.
  template <Words kIn>
  void ForwardPass(uint32_t node, int levels, const uint64_t* in, uint64_t* out) const {
    const auto roots = NodeRoots<A, 2>::Forward(prime_, node);
    const Modulus m = m_;
    const int64_t stride = int64_t{1} << (levels - 2);
    for (int64_t j = 0; j < stride; ++j) {
      Residue x[4];
      CIPHERD_UNROLL
      for (int e = 0; e < 4; ++e) {
        const uint64_t word = in[j + e * stride];
        x[e] = kIn == Words::kCanonical ? A::FromWord(word) : A::FromBits(word);
      }
      ForwardNode<A, 2>(x, roots, m);
      CIPHERD_UNROLL
      for (int e = 0; e < 4; ++e) out[j + e * stride] = A::ToBits(x[e]);
    }
  }

  // The last kDepth levels, from `node` to its leaves.
  template <int kDepth>
  void ForwardLeaves(uint32_t node, uint64_t* data) const {
    const auto roots = NodeRoots<A, kDepth>::Forward(prime_, node);
    Residue x[1 << kDepth];
    CIPHERD_UNROLL
    for (int e = 0; e < 1 << kDepth; ++e) x[e] = A::FromBits(data[e]);
    ForwardNode<A, kDepth>(x, roots, m_);
    CIPHERD_UNROLL
    for (int e = 0; e < 1 << kDepth; ++e) data[e] = A::ToWord(A::FinishForward(x[e], m_));
  }

  // The first kDepth levels, from leaves up to `node`.
  template <int kDepth>
  void InverseLeaves(uint32_t node, const uint64_t* in, uint64_t* out) const {
    const auto roots = NodeRoots<A, kDepth>::Inverse(prime_, node);
    Residue x[1 << kDepth];
    CIPHERD_UNROLL
    for (int e = 0; e < 1 << kDepth; ++e) x[e] = A::FromWord(in[e]);
    InverseNode<A, kDepth>(x, roots, m_);
    CIPHERD_UNROLL
    for (int e = 0; e < 1 << kDepth; ++e) out[e] = A::ToBits(x[e]);
  }

  // Two levels up to `node`; to the root with division by N.
  template <bool kIsRoot>
  void InversePass(uint32_t node, int levels, uint64_t* data) const {
    const auto roots = NodeRoots<A, 2>::Inverse(prime_, node);
    const Modulus m = m_;
    const int64_t stride = int64_t{1} << (levels - 2);
    for (int64_t j = 0; j < stride; ++j) {
      Residue x[4];
      CIPHERD_UNROLL
      for (int e = 0; e < 4; ++e) x[e] = A::FromBits(data[j + e * stride]);
      if constexpr (kIsRoot) {
        InverseRootNode<A, 2>(x, roots, prime_, m);
      } else {
        InverseNode<A, 2>(x, roots, m);
      }
      CIPHERD_UNROLL
      for (int e = 0; e < 4; ++e) {
        data[j + e * stride] = kIsRoot ? A::ToWord(x[e]) : A::ToBits(x[e]);
      }
    }
  }

  const ring::PrimeConstants& prime_;
  const Modulus m_;
};

}  // namespace cipherd::kernels::host
