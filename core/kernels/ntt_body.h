// The negacyclic number theoretic transform, in pieces of 2, 4, 8, ... points.
//
// The transform splits X^N + 1 = X^N - psi^N over a binary tree. Node 1 is the root; node v has
// children 2v and 2v + 1 and stands for the ring Z_q[X]/(X^t - root(v)^2), t = N / 2^floor(log2 v);
// its polynomial modulo (X^(t/2) - root(v)) and (X^(t/2) + root(v)) are its children's, root(v) =
// psi^bitrev(v). In memory, the t words of a node lie together, the two children in order, so that
// leaf i, the value at psi^(2·bitrev(i)+1), is entry i.
//
// A subtree of depth k under node v, for one residue class of coefficients, is a transform of 2^k
// points with the roots of v (stage 0), 2v and 2v+1 (stage 1), ...: NodeFactors loads those 2^k - 1
// roots, and ForwardNode and InverseNode transform 2^k residues in registers. A launcher decides in
// which order nodes are visited.
#pragma once

#include <cstdint>

#include "core/kernels/arithmetic_tables.h"
#include "core/math/host_device.h"
#include "core/ring/ring_tables.h"

namespace cipherd::kernels {

// Roots of a subtree of depth kDepth: stage s, node g of that stage, at (1 << s) - 1 + g.
template <class A, int kDepth>
struct NodeFactors {
  typename A::Factor factor[(1 << kDepth) - 1];

  static CIPHERD_HD NodeFactors Forward(const ring::PrimeConstants& prime, uint32_t node) {
    NodeFactors result;
    CIPHERD_UNROLL
    for (int stage = 0; stage < kDepth; ++stage) {
      CIPHERD_UNROLL
      for (int g = 0; g < 1 << stage; ++g) {
        result.factor[(1 << stage) - 1 + g] =
            ArithmeticTables<A>::ForwardRoot(prime, (node << stage) + g);
      }
    }
    return result;
  }

  static CIPHERD_HD NodeFactors Inverse(const ring::PrimeConstants& prime, uint32_t node) {
    NodeFactors result;
    CIPHERD_UNROLL
    for (int stage = 0; stage < kDepth; ++stage) {
      CIPHERD_UNROLL
      for (int g = 0; g < 1 << stage; ++g) {
        result.factor[(1 << stage) - 1 + g] =
            ArithmeticTables<A>::InverseRoot(prime, (node << stage) + g);
      }
    }
    return result;
  }
};

// Transforms x, residues in the range of A::ForwardButterfly, from a node down to its descendants
// kDepth below.
template <class A, int kDepth>
CIPHERD_HD void ForwardNode(typename A::Residue (&x)[1 << kDepth],
                            const NodeFactors<A, kDepth>& factors, const typename A::Modulus& m) {
  CIPHERD_UNROLL
  for (int stage = 0; stage < kDepth; ++stage) {
    const int half = 1 << (kDepth - stage - 1);
    CIPHERD_UNROLL
    for (int g = 0; g < 1 << stage; ++g) {
      CIPHERD_UNROLL
      for (int j = 0; j < half; ++j) {
        A::ForwardButterfly(x[2 * g * half + j], x[(2 * g + 1) * half + j],
                            factors.factor[(1 << stage) - 1 + g], m);
      }
    }
  }
}

// Transforms x, residues in the range of A::InverseButterfly, from the descendants kDepth below a
// node up to child_stage, 0 for the node itself; each level scales by 2.
template <class A, int kDepth, int kToStage = 0>
CIPHERD_HD void InverseNode(typename A::Residue (&x)[1 << kDepth],
                            const NodeFactors<A, kDepth>& factors, const typename A::Modulus& m) {
  CIPHERD_UNROLL
  for (int stage = kDepth - 1; stage >= kToStage; --stage) {
    const int half = 1 << (kDepth - stage - 1);
    CIPHERD_UNROLL
    for (int g = 0; g < 1 << stage; ++g) {
      CIPHERD_UNROLL
      for (int j = 0; j < half; ++j) {
        A::InverseButterfly(x[2 * g * half + j], x[(2 * g + 1) * half + j],
                            factors.factor[(1 << stage) - 1 + g], m);
      }
    }
  }
}

// InverseNode for the root of the tree, dividing by N: leaves canonical residues.
template <class A, int kDepth>
CIPHERD_HD void InverseRootNode(typename A::Residue (&x)[1 << kDepth],
                                const NodeFactors<A, kDepth>& factors,
                                const ring::PrimeConstants& prime, const typename A::Modulus& m) {
  InverseNode<A, kDepth, 1>(x, factors, m);
  const typename A::Factor inverse_n = ArithmeticTables<A>::InverseN(prime);
  const typename A::Factor inverse_n_root = ArithmeticTables<A>::InverseNRoot(prime);
  const int half = 1 << (kDepth - 1);
  CIPHERD_UNROLL
  for (int j = 0; j < half; ++j) {
    A::LastInverseButterfly(x[j], x[half + j], inverse_n, inverse_n_root, m);
  }
}

}  // namespace cipherd::kernels
