// The two passes of a transform of N = 2^13 to 2^16 points, as pieces that kernels are made of.
//
// A limb is a matrix of 2^upper rows of 256 words, upper = log N - 8. The column pass takes the
// upper levels: a block has a tile of all rows of some neighbouring columns. The row pass takes the
// lower eight: a block has some whole rows. A forward transform is columns, then rows; an inverse
// one rows, then columns. Either way a thread holds 16 points in registers, works on up to four
// levels, exchanges its points once in shared memory, and works on the rest. Blocks have 256
// threads, or fewer where they would not fill the chip.
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
#include "core/math/fma_arithmetic.h"
#include "core/math/host_device.h"

namespace cipherd::kernels::cuda {

constexpr int kRowLevels = 8;
constexpr int kTileThreads = 256;
constexpr int kSmallTileThreads = 64;
// Blocks of 256 threads that a multiprocessor has registers for.
template <class A>
constexpr int kTileBlocks = std::is_same_v<A, math::FmaArithmetic> ? 3 : 2;
// Work for fewer blocks than this is spread over smaller ones: half as many as an H200 has
// multiprocessors.
constexpr int64_t kFewBlocks = 66;
// Of a thread.
constexpr int kPoints = 16;
constexpr int kPointsLog = 4;

// Calls launch.template operator()<upper, threads>() for upper from 5 to 8 and either block size.
template <class LaunchOf>
absl::Status WithTile(int upper, int threads, const LaunchOf& launch) {
  static_assert(kTwoPassMinLogN - kRowLevels == 5 && kTwoPassMaxLogN - kRowLevels == 8);
  const bool is_small = threads == kSmallTileThreads;
  switch (upper) {
    case 5:
      return is_small ? launch.template operator()<5, kSmallTileThreads>()
                      : launch.template operator()<5, kTileThreads>();
    case 6:
      return is_small ? launch.template operator()<6, kSmallTileThreads>()
                      : launch.template operator()<6, kTileThreads>();
    case 7:
      return is_small ? launch.template operator()<7, kSmallTileThreads>()
                      : launch.template operator()<7, kTileThreads>();
    default:
      return is_small ? launch.template operator()<8, kSmallTileThreads>()
                      : launch.template operator()<8, kTileThreads>();
  }
}

// Shared memory of a row, with one word of padding in 16, and of the most rows of a block.
constexpr int kRowStride = (1 << kRowLevels) + (1 << (kRowLevels - 4));
constexpr int kRowTileWords = kPoints * kRowStride;

// Words of a limb that a block of `threads` has.
constexpr int TileWords(int threads) { return threads * kPoints; }

// Threads of a block where 2^log_n words of `limbs` limbs are to be shared out.
inline int TileThreadsFor(int log_n, int64_t limbs, int64_t few_blocks = kFewBlocks) {
  return (limbs << log_n) / TileWords(kTileThreads) < few_blocks ? kSmallTileThreads : kTileThreads;
}

// The limb's row that a thread of a pass over rows works on.
__device__ inline uint32_t RowOfThread() {
  return (blockIdx.x * blockDim.x + threadIdx.x) >> kPointsLog;
}

// Where its point 0 lies in the limb.
__device__ inline int64_t RowWord(uint32_t row, int lane) {
  return (static_cast<int64_t>(row) << kRowLevels) + lane;
}

// Where word i of a row lies in shared memory.
CIPHERD_HD int PaddedIndex(int i) { return i + (i >> kPointsLog); }

// One row of a tile: 16 neighbouring threads, that is half a warp. Point e of a thread is word
// 16e + lane() of its row. `words` is shared memory of kRowStride words a row; no other thread than
// those of the row touches the row's part, so that warps need not wait for each other.
template <class A>
class RowOfTile {
 public:
  using Residue = typename A::Residue;

  __device__ explicit RowOfTile(Residue* words) : words_(words + row() * kRowStride) {}

  static __device__ int row() { return static_cast<int>(threadIdx.x) >> kPointsLog; }
  static __device__ int lane() { return static_cast<int>(threadIdx.x) & (kPoints - 1); }

  // The lanes of the row's half of the warp.
  static __device__ unsigned mask() { return (threadIdx.x & 16) == 0 ? 0x0000ffffu : 0xffff0000u; }

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

  // Leaves x[e] of every thread in shared memory, in the order of words.
  __device__ void Publish(const Residue (&x)[kPoints]) const {
    __syncwarp(mask());
    CIPHERD_UNROLL
    for (int e = 0; e < kPoints; ++e) At(e * kPoints + lane()) = x[e];
    __syncwarp(mask());
  }

 private:
  __device__ Residue& At(int i) const { return words_[PaddedIndex(i)]; }

  // From words 16e + lane to words 16 lane + e. A thread writes what it read last, so that one
  // barrier an exchange is enough.
  __device__ void StridedToNeighbours(Residue (&x)[kPoints]) const {
    CIPHERD_UNROLL
    for (int e = 0; e < kPoints; ++e) At(e * kPoints + lane()) = x[e];
    __syncwarp(mask());
    CIPHERD_UNROLL
    for (int e = 0; e < kPoints; ++e) x[e] = At(lane() * kPoints + e);
  }
  __device__ void NeighboursToStrided(Residue (&x)[kPoints]) const {
    CIPHERD_UNROLL
    for (int e = 0; e < kPoints; ++e) At(lane() * kPoints + e) = x[e];
    __syncwarp(mask());
    CIPHERD_UNROLL
    for (int e = 0; e < kPoints; ++e) x[e] = At(e * kPoints + lane());
  }

  Residue* words_;
};

// A tile of columns for blocks of kThreads. `words` is shared memory of TileWords(kThreads).
template <class A, int kUpper, int kThreads>
class ColumnTile {
 public:
  using Residue = typename A::Residue;
  static constexpr int kColumnsLog = (kThreads == kTileThreads ? 12 : 10) - kUpper;
  static constexpr int kColumns = 1 << kColumnsLog;
  static_assert(kColumns << kUpper == TileWords(kThreads));

  __device__ explicit ColumnTile(Residue* words) : words_(words) {}

  // Where point i of a thread lies when a forward transform begins and an inverse one ends.
  static __device__ int TopRow(int i) {
    return (i & ((1 << kTop) - 1)) * kPoints + (TopLane(i) >> kColumnsLog);
  }
  static __device__ int TopColumn(int i) { return TopLane(i) & (kColumns - 1); }

  // fill(x) makes x[i] a canonical residue, that of (TopRow(i), TopColumn(i)); store(row, column,
  // residue) takes residues under way. Every fill of the block comes before any store.
  template <class Fill, class Store>
  __device__ void Forward(const ring::PrimeConstants& prime, const typename A::Modulus& m,
                          const Fill& fill, const Store& store) const {
    Residue x[kPoints];
    fill(x);
    const auto top = NodeRoots<A, kTop>::Forward(prime, 1);
    CIPHERD_UNROLL
    for (int i = 0; i < kPoints; i += 1 << kTop) ForwardNode<A, kTop, true>(x + i, top, m);
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
    return (i >> kTop) * kThreads + static_cast<int>(threadIdx.x);
  }
  static __device__ int BottomGroup() { return static_cast<int>(threadIdx.x) >> kColumnsLog; }
  static __device__ int BottomRow(int e) { return BottomGroup() * kPoints + e; }
  static __device__ int BottomColumn() { return static_cast<int>(threadIdx.x) & (kColumns - 1); }

  __device__ Residue& At(int row, int column) const {
    return words_[(row << kColumnsLog) + column];
  }

  Residue* words_;
};

}  // namespace cipherd::kernels::cuda
