// The two passes of a transform of N = 2^13 to 2^16 points, as pieces that kernels are made of.
//
// A limb is a matrix of 2^upper rows of 256 words, upper = log N - 8. The column pass takes the
// upper levels: a block has a tile of all rows of 2^12 / 2^upper neighbouring columns. The row pass
// takes the lower eight: a block has 16 whole rows. A forward transform is columns, then rows; an
// inverse one rows, then columns. Either way a thread of 256 holds 16 points in registers, works on
// up to four levels, exchanges its points once in shared memory, and works on the rest.
//
// Residues come and go in registers or through functions, so that a kernel can fuse what produces
// or consumes them. Between the passes they are residues under way (A::ToBits).
#pragma once

#include <cstdint>
#include <type_traits>

#include "absl/status/status.h"
#include "core/kernels/arithmetic_tables.h"
#include "core/kernels/cuda/launchers.h"
#include "core/kernels/ntt_body.h"
#include "core/math/host_device.h"

namespace cipherd::kernels::cuda {

constexpr int kRowLevels = 8;
constexpr int kTileLog = 12;
constexpr int kTileThreads = 256;
// Of a thread.
constexpr int kPoints = 16;
constexpr int kPointsLog = 4;

// Calls launch(std::integral_constant<int, upper>), upper from 5 to 8.
template <class LaunchOf>
absl::Status WithUpper(int upper, const LaunchOf& launch) {
  static_assert(kTwoPassMinLogN - kRowLevels == 5 && kTwoPassMaxLogN - kRowLevels == 8);
  switch (upper) {
    case 5:
      return launch(std::integral_constant<int, 5>());
    case 6:
      return launch(std::integral_constant<int, 6>());
    case 7:
      return launch(std::integral_constant<int, 7>());
    default:
      return launch(std::integral_constant<int, 8>());
  }
}

// Shared memory of a tile of rows, with one word of padding in 16, and of columns.
constexpr int kRowTileWords = (1 << kTileLog) + (1 << (kTileLog - 4));
constexpr int kColumnTileWords = 1 << kTileLog;

// One of the 16 rows of a tile: 16 neighbouring threads, that is half a warp. Point e of a thread
// is word 16e + lane() of its row. `words` is shared memory of kRowTileWords; no other thread than
// those of the row touches the row's part, so that warps need not wait for each other.
template <class A>
class RowOfTile {
 public:
  using Residue = typename A::Residue;

  __device__ explicit RowOfTile(Residue* words)
      : words_(words + row() * (kRowTileWords >> kPointsLog)) {}

  static __device__ int row() { return static_cast<int>(threadIdx.x) >> kPointsLog; }
  static __device__ int lane() { return static_cast<int>(threadIdx.x) & (kPoints - 1); }

  // From residues under way to unfinished ones (A::FinishForward). `node` is that of the row.
  __device__ void Forward(Residue (&x)[kPoints], uint32_t node, const ring::PrimeConstants& prime,
                          const typename A::Modulus& m) const {
    ForwardNode<A, 4>(x, NodeRoots<A, 4>::Forward(prime, node), m);
    StridedToNeighbours(x);
    ForwardNode<A, 4>(x, NodeRoots<A, 4>::Forward(prime, (node << 4) + lane()), m);
    NeighboursToStrided(x);
  }

  // From canonical residues to residues under way.
  __device__ void Inverse(Residue (&x)[kPoints], uint32_t node, const ring::PrimeConstants& prime,
                          const typename A::Modulus& m) const {
    StridedToNeighbours(x);
    InverseNode<A, 4>(x, NodeRoots<A, 4>::Inverse(prime, (node << 4) + lane()), m);
    NeighboursToStrided(x);
    InverseNode<A, 4>(x, NodeRoots<A, 4>::Inverse(prime, node), m);
  }

  // x[e] of every thread, then word(i) of any word of the row, until the next exchange.
  __device__ void Publish(const Residue (&x)[kPoints]) const {
    __syncwarp();
    CIPHERD_UNROLL
    for (int e = 0; e < kPoints; ++e) At(e * kPoints + lane()) = x[e];
    __syncwarp();
  }
  __device__ Residue word(int i) const { return At(i); }

 private:
  __device__ Residue& At(int i) const { return words_[i + (i >> kPointsLog)]; }

  // From words 16e + lane to words 16 lane + e. A thread writes what it read last, so that one
  // barrier an exchange is enough.
  __device__ void StridedToNeighbours(Residue (&x)[kPoints]) const {
    CIPHERD_UNROLL
    for (int e = 0; e < kPoints; ++e) At(e * kPoints + lane()) = x[e];
    __syncwarp();
    CIPHERD_UNROLL
    for (int e = 0; e < kPoints; ++e) x[e] = At(lane() * kPoints + e);
  }
  __device__ void NeighboursToStrided(Residue (&x)[kPoints]) const {
    CIPHERD_UNROLL
    for (int e = 0; e < kPoints; ++e) At(lane() * kPoints + e) = x[e];
    __syncwarp();
    CIPHERD_UNROLL
    for (int e = 0; e < kPoints; ++e) x[e] = At(e * kPoints + lane());
  }

  Residue* words_;
};

// A tile of columns. `words` is shared memory of kColumnTileWords.
template <class A, int kUpper>
class ColumnTile {
 public:
  using Residue = typename A::Residue;
  static constexpr int kColumnsLog = kTileLog - kUpper;
  static constexpr int kColumns = 1 << kColumnsLog;

  __device__ explicit ColumnTile(Residue* words) : words_(words) {}

  // load(row, column) gives canonical residues; store(row, column, residue) takes residues under
  // way. Every load of the block comes before any store.
  template <class Load, class Store>
  __device__ void Forward(const ring::PrimeConstants& prime, const typename A::Modulus& m,
                          const Load& load, const Store& store) const {
    Residue x[kPoints];
    CIPHERD_UNROLL
    for (int i = 0; i < kPoints; ++i) x[i] = load(TopRow(i), TopColumn(i));
    const auto top = NodeRoots<A, kTop>::Forward(prime, 1);
    CIPHERD_UNROLL
    for (int i = 0; i < kPoints; i += 1 << kTop) ForwardNode<A, kTop>(x + i, top, m);
    CIPHERD_UNROLL
    for (int i = 0; i < kPoints; ++i) At(TopRow(i), TopColumn(i)) = x[i];
    __syncthreads();
    CIPHERD_UNROLL
    for (int e = 0; e < kPoints; ++e) x[e] = At(BottomRow(e), BottomColumn());
    ForwardNode<A, 4>(x, NodeRoots<A, 4>::Forward(prime, (1 << kTop) + BottomGroup()), m);
    CIPHERD_UNROLL
    for (int e = 0; e < kPoints; ++e) store(BottomRow(e), BottomColumn(), x[e]);
  }

  // load(row, column) gives residues under way; store(row, column, residue) takes canonical ones.
  template <class Load, class Store>
  __device__ void Inverse(const ring::PrimeConstants& prime, const typename A::Modulus& m,
                          const Load& load, const Store& store) const {
    Residue x[kPoints];
    CIPHERD_UNROLL
    for (int e = 0; e < kPoints; ++e) x[e] = load(BottomRow(e), BottomColumn());
    InverseNode<A, 4>(x, NodeRoots<A, 4>::Inverse(prime, (1 << kTop) + BottomGroup()), m);
    CIPHERD_UNROLL
    for (int e = 0; e < kPoints; ++e) At(BottomRow(e), BottomColumn()) = x[e];
    __syncthreads();
    CIPHERD_UNROLL
    for (int i = 0; i < kPoints; ++i) x[i] = At(TopRow(i), TopColumn(i));
    const auto top = NodeRoots<A, kTop>::Inverse(prime, 1);
    CIPHERD_UNROLL
    for (int i = 0; i < kPoints; i += 1 << kTop) InverseRootNode<A, kTop>(x + i, top, prime, m);
    CIPHERD_UNROLL
    for (int i = 0; i < kPoints; ++i) store(TopRow(i), TopColumn(i), x[i]);
  }

 private:
  // The top levels work on words 16 rows apart, the bottom four on 16 neighbouring rows.
  static constexpr int kTop = kUpper - kPointsLog;
  static_assert(kTop >= 1 && kTop <= kMaxNodeDepth);

  // Point i of a thread is number i mod 2^kTop of one of its nodes of the top.
  static __device__ int TopLane(int i) {
    return (i >> kTop) * kTileThreads + static_cast<int>(threadIdx.x);
  }
  static __device__ int TopRow(int i) {
    return (i & ((1 << kTop) - 1)) * kPoints + (TopLane(i) >> kColumnsLog);
  }
  static __device__ int TopColumn(int i) { return TopLane(i) & (kColumns - 1); }
  static __device__ int BottomGroup() { return static_cast<int>(threadIdx.x) >> kColumnsLog; }
  static __device__ int BottomRow(int e) { return BottomGroup() * kPoints + e; }
  static __device__ int BottomColumn() { return static_cast<int>(threadIdx.x) & (kColumns - 1); }

  __device__ Residue& At(int row, int column) const {
    return words_[(row << kColumnsLog) + column];
  }

  Residue* words_;
};

}  // namespace cipherd::kernels::cuda
