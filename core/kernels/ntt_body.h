// The negacyclic number theoretic transform, in pieces of 2, 4, 8, ... points.
//
// The transform splits X^N + 1 = X^N - psi^N over a binary tree. Node 1 is the root; node v has
// children 2v and 2v + 1 and stands for the ring Z_q[X]/(X^t - root(v)^2), t = N / 2^floor(log2 v);
// its polynomial modulo (X^(t/2) - root(v)) and (X^(t/2) + root(v)) are its children's, root(v) =
// psi^bitrev(v). In memory, the t words of a node lie together, the two children in order, so that
// leaf i, the value at psi^(2·bitrev(i)+1), is entry i.
//
// A subtree of depth k under node v, for one residue class of coefficients, is a transform of 2^k
// points with the roots of v (stage 0), 2v and 2v+1 (stage 1), ...: NodeRoots loads those 2^k - 1
// roots, and ForwardNode and InverseNode transform 2^k residues in registers, k at most
// kMaxNodeDepth: so many levels does every arithmetic allow before it reduces. A launcher decides
// in which order nodes are visited.
#pragma once

#include <cstdint>

#include "core/kernels/arithmetic_tables.h"
#include "core/math/host_device.h"
#include "core/ring/ring_tables.h"

namespace cipherd::kernels {

inline constexpr int kMaxNodeDepth = 4;

// Roots of a subtree of depth kDepth: stage s, node g of that stage, at (1 << s) - 1 + g.
template <class A, int kDepth>
struct NodeRoots {
  typename A::Root root[(1 << kDepth) - 1];

  static CIPHERD_HD NodeRoots Forward(const ring::PrimeConstants& prime, uint32_t node) {
    NodeRoots result;
    ArithmeticTables<A>::template ForwardRoots<1>(prime, node, result.root);
    if constexpr (kDepth > 1) {
      ArithmeticTables<A>::template ForwardRoots<2>(prime, node << 1, result.root + 1);
    }
    if constexpr (kDepth > 2) {
      ArithmeticTables<A>::template ForwardRoots<4>(prime, node << 2, result.root + 3);
    }
    if constexpr (kDepth > 3) {
      ArithmeticTables<A>::template ForwardRoots<8>(prime, node << 3, result.root + 7);
    }
    return result;
  }

  static CIPHERD_HD NodeRoots Inverse(const ring::PrimeConstants& prime, uint32_t node) {
    NodeRoots result;
    ArithmeticTables<A>::template InverseRoots<1>(prime, node, result.root);
    if constexpr (kDepth > 1) {
      ArithmeticTables<A>::template InverseRoots<2>(prime, node << 1, result.root + 1);
    }
    if constexpr (kDepth > 2) {
      ArithmeticTables<A>::template InverseRoots<4>(prime, node << 2, result.root + 3);
    }
    if constexpr (kDepth > 3) {
      ArithmeticTables<A>::template InverseRoots<8>(prime, node << 3, result.root + 7);
    }
    return result;
  }
};

// The levels of a subtree from stage kStage on: recursive, so that every index into x is a
// constant.
template <class A, int kDepth, int kStage>
CIPHERD_HD void ForwardStages(typename A::Residue* x, const NodeRoots<A, kDepth>& roots,
                              const typename A::Modulus& m) {
  if constexpr (kStage < kDepth) {
    constexpr int kHalf = 1 << (kDepth - kStage - 1);
    typename A::Factor factor;
    CIPHERD_UNROLL
    for (int butterfly = 0; butterfly < 1 << (kDepth - 1); ++butterfly) {
      const int g = butterfly / kHalf;
      const int j = butterfly % kHalf;
      if (j == 0) factor = A::FactorOfRoot(roots.root[(1 << kStage) - 1 + g], m);
      A::ForwardButterfly(x[2 * g * kHalf + j], x[(2 * g + 1) * kHalf + j], factor, m);
    }
    ForwardStages<A, kDepth, kStage + 1>(x, roots, m);
  }
}

// Transforms x[0] to x[2^kDepth - 1], residues in the range of A::ForwardButterfly, from a node
// down to its descendants kDepth below. kIsSettled: the residues have been through no level yet.
template <class A, int kDepth, bool kIsSettled = false>
CIPHERD_HD void ForwardNode(typename A::Residue* x, const NodeRoots<A, kDepth>& roots,
                            const typename A::Modulus& m) {
  static_assert(kDepth <= kMaxNodeDepth);
  if (!kIsSettled && A::NeedsSettling(m)) {
    CIPHERD_UNROLL
    for (int e = 0; e < 1 << kDepth; ++e) x[e] = A::Settle(x[e], m);
  }
  ForwardStages<A, kDepth, 0>(x, roots, m);
}

// The levels of a subtree from stage kStage up to kToStage.
template <class A, int kDepth, int kStage, int kToStage>
CIPHERD_HD void InverseStages(typename A::Residue* x, const NodeRoots<A, kDepth>& roots,
                              const typename A::Modulus& m) {
  if constexpr (kStage >= kToStage) {
    constexpr int kHalf = 1 << (kDepth - kStage - 1);
    typename A::Factor factor;
    CIPHERD_UNROLL
    for (int butterfly = 0; butterfly < 1 << (kDepth - 1); ++butterfly) {
      const int g = butterfly / kHalf;
      const int j = butterfly % kHalf;
      if (j == 0) factor = A::FactorOfRoot(roots.root[(1 << kStage) - 1 + g], m);
      A::InverseButterfly(x[2 * g * kHalf + j], x[(2 * g + 1) * kHalf + j], factor, m);
    }
    // The sums of this level are what has grown.
    if constexpr (kStage == 0) {
      CIPHERD_UNROLL
      for (int e = 0; e < 1 << kDepth; ++e) {
        if ((e & kHalf) == 0) x[e] = A::SettleInverseNode(x[e], m);
      }
    } else if ((kDepth - kStage) % 2 == 0 && A::NeedsSettling(m)) {
      CIPHERD_UNROLL
      for (int e = 0; e < 1 << kDepth; ++e) {
        if ((e & kHalf) == 0) x[e] = A::Settle(x[e], m);
      }
    }
    InverseStages<A, kDepth, kStage - 1, kToStage>(x, roots, m);
  }
}

// Transforms x, residues in the range of A::InverseButterfly, from the descendants kDepth below a
// node up to kToStage, 0 for the node itself; each level scales by 2.
template <class A, int kDepth, int kToStage = 0>
CIPHERD_HD void InverseNode(typename A::Residue* x, const NodeRoots<A, kDepth>& roots,
                            const typename A::Modulus& m) {
  static_assert(kDepth <= kMaxNodeDepth);
  InverseStages<A, kDepth, kDepth - 1, kToStage>(x, roots, m);
}

// InverseNode for the root of the tree, dividing by N: leaves canonical residues.
template <class A, int kDepth>
CIPHERD_HD void InverseRootNode(typename A::Residue* x, const NodeRoots<A, kDepth>& roots,
                                const ring::PrimeConstants& prime, const typename A::Modulus& m) {
  InverseNode<A, kDepth, 1>(x, roots, m);
  const typename A::Factor inverse_n = ArithmeticTables<A>::InverseN(prime, m);
  const typename A::Factor inverse_n_root = ArithmeticTables<A>::InverseNRoot(prime, m);
  const int half = 1 << (kDepth - 1);
  CIPHERD_UNROLL
  for (int j = 0; j < half; ++j) {
    A::LastInverseButterfly(x[j], x[half + j], inverse_n, inverse_n_root, m);
  }
}

}  // namespace cipherd::kernels
