// Transforms of every degree; ntt.cu has faster ones for some.
//
// A transform is one pass over tiles in shared memory, or two above N = 2^12. Of two passes, the
// column pass takes the upper half of the levels: the limb is a matrix of 2^upper rows, and a tile
// is all rows of 16 neighbouring columns. The row pass takes the lower half: a tile is some whole
// rows. (One pass is a row pass over a matrix of one row.) Inside a tile, a thread transforms 8
// points at a time in registers.
#include <cstdint>

#include "core/kernels/arithmetic_tables.h"
#include "core/kernels/cuda/launch.cuh"
#include "core/kernels/cuda/ntt_any_degree.h"
#include "core/kernels/ntt_body.h"
#include "core/kernels/poly_access.h"
#include "core/math/fma_arithmetic.h"
#include "core/math/integer_arithmetic.h"

namespace cipherd::kernels::cuda {
namespace {

using ring::PrimeConstants;

constexpr int kMaxSinglePassLevels = 12;
// Words of a tile of the row pass, where rows are shorter.
constexpr int kRowTileLog = 11;
// Columns of a tile of the column pass: 128 bytes of each row.
constexpr int kColumnTileLog = 4;
constexpr unsigned kMaxThreads = 512;

enum class Direction { kForward, kInverse };

// How a limb is split: 2^upper rows of 2^lower words.
struct Split {
  int upper;
  int lower;
};

Split SplitOf(int log_n) {
  if (log_n <= kMaxSinglePassLevels) return {0, log_n};
  return {log_n / 2, log_n - log_n / 2};
}

// 2^levels points for each of 2^width_log independent transforms ("lanes"), in shared memory.
template <class A, bool kIsColumnTile>
struct Tile {
  using Residue = typename A::Residue;

  Residue* words;
  int levels;
  int width_log;
  // Node of lane 0, and whether lane k belongs to node first_node + k or to the same.
  uint32_t first_node;

  __device__ uint32_t word_count() const { return 1u << (levels + width_log); }

  // One word of padding in 16 spreads the accesses of every step over the banks.
  __device__ Residue& At(uint32_t word) const { return words[word + (word >> 4)]; }

  __device__ uint32_t WordOf(uint32_t lane, uint32_t point) const {
    return kIsColumnTile ? (point << width_log) + lane : (lane << levels) + point;
  }

  // kDepth levels, beginning `above` levels under the nodes. Every thread of the block takes part;
  // ends with the block in step.
  template <Direction kDirection, int kDepth, bool kIsRoot>
  __device__ void Step(const PrimeConstants& prime, const typename A::Modulus& m, int above) const {
    const int stride_log = levels - above - kDepth;
    const uint32_t stride_mask = (1u << stride_log) - 1;
    for (uint32_t item = threadIdx.x; item < word_count() >> kDepth; item += blockDim.x) {
      // Neighbouring threads take neighbouring words.
      uint32_t lane;
      uint32_t rest;
      if (kIsColumnTile) {
        lane = item & ((1u << width_log) - 1);
        rest = item >> width_log;
      } else {
        lane = item >> (levels - kDepth);
        rest = item & ((1u << (levels - kDepth)) - 1);
      }
      const uint32_t group = rest >> stride_log;
      const uint32_t first_point = (group << (levels - above)) + (rest & stride_mask);
      const uint32_t node = ((first_node + (kIsColumnTile ? 0 : lane)) << above) + group;

      Residue x[1 << kDepth];
      CIPHERD_UNROLL
      for (int e = 0; e < 1 << kDepth; ++e) {
        x[e] = At(WordOf(lane, first_point + (e << stride_log)));
      }
      if constexpr (kDirection == Direction::kForward) {
        ForwardNode<A, kDepth>(x, NodeRoots<A, kDepth>::Forward(prime, node), m);
      } else if constexpr (kIsRoot) {
        InverseRootNode<A, kDepth>(x, NodeRoots<A, kDepth>::Inverse(prime, node), prime, m);
      } else {
        InverseNode<A, kDepth>(x, NodeRoots<A, kDepth>::Inverse(prime, node), m);
      }
      CIPHERD_UNROLL
      for (int e = 0; e < 1 << kDepth; ++e) {
        At(WordOf(lane, first_point + (e << stride_log))) = x[e];
      }
    }
    __syncthreads();
  }

  template <Direction kDirection, bool kIsRoot = false>
  __device__ void StepOfDepth(int depth, const PrimeConstants& prime, const typename A::Modulus& m,
                              int above) const {
    if (depth == 3) {
      Step<kDirection, 3, kIsRoot>(prime, m, above);
    } else {
      Step<kDirection, 2, kIsRoot>(prime, m, above);
    }
  }

  // How many levels to take of `left`, so that 2 or 3 are taken each time. Requires left >= 2.
  static __device__ int DepthOf(int left) { return left == 2 || left == 4 ? 2 : 3; }

  __device__ void Forward(const PrimeConstants& prime, const typename A::Modulus& m) const {
    for (int above = 0; above < levels;) {
      const int depth = DepthOf(levels - above);
      StepOfDepth<Direction::kForward>(depth, prime, m, above);
      above += depth;
    }
  }

  // With is_root, the first nodes are the root of the whole transform.
  __device__ void Inverse(const PrimeConstants& prime, const typename A::Modulus& m,
                          bool is_root) const {
    for (int left = levels; left > 0;) {
      const int depth = DepthOf(left);
      left -= depth;
      if (left == 0 && is_root) {
        StepOfDepth<Direction::kInverse, true>(depth, prime, m, 0);
      } else {
        StepOfDepth<Direction::kInverse>(depth, prime, m, left);
      }
    }
  }
};

// What a pass reads and writes: canonical words at the ends of the transform, residues under way
// between two passes.
struct PassArguments {
  RingTables ring;
  LimbPrimes limbs;
  ConstPolyView in;
  PolyView out;
  Split split;
  // Of the tile.
  int levels;
  int width_log;
  bool is_first;
  bool is_last;
};

template <class A, Direction kDirection, bool kIsColumnTile>
__global__ void __launch_bounds__(kMaxThreads)
    PassKernel(const __grid_constant__ PassArguments arguments) {
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  const int log_n = arguments.ring.log_n;
  const auto limb = static_cast<int>(blockIdx.y);
  const auto outer = static_cast<int64_t>(blockIdx.z);
  const PrimeConstants& prime = arguments.ring.primes[arguments.limbs.prime[limb]];
  const auto m = ArithmeticTables<A>::Modulus(prime);

  Tile<A, kIsColumnTile> tile;
  tile.words = reinterpret_cast<typename A::Residue*>(shared_bytes);
  tile.levels = arguments.levels;
  tile.width_log = arguments.width_log;
  tile.first_node =
      kIsColumnTile ? 1 : (1u << arguments.split.upper) + (blockIdx.x << arguments.width_log);

  // Where word w of the tile lies in its limb.
  const auto index_of = [&](uint32_t w) -> uint32_t {
    if (!kIsColumnTile) return (blockIdx.x << (tile.levels + tile.width_log)) + w;
    const uint32_t column = (blockIdx.x << tile.width_log) + (w & ((1u << tile.width_log) - 1));
    return ((w >> tile.width_log) << arguments.split.lower) + column;
  };

  const uint64_t* const in = LimbOf(arguments.in, outer, limb, log_n);
  for (uint32_t w = threadIdx.x; w < tile.word_count(); w += blockDim.x) {
    const uint64_t word = in[index_of(w)];
    tile.At(w) = arguments.is_first ? A::FromWord(word) : A::FromBits(word);
  }
  __syncthreads();
  if constexpr (kDirection == Direction::kForward) {
    tile.Forward(prime, m);
  } else {
    tile.Inverse(prime, m, arguments.is_last);
  }
  uint64_t* const out = LimbOf(arguments.out, outer, limb, log_n);
  for (uint32_t w = threadIdx.x; w < tile.word_count(); w += blockDim.x) {
    typename A::Residue residue = tile.At(w);
    if (kDirection == Direction::kForward && arguments.is_last) {
      residue = A::FinishForward(residue, m);
    }
    out[index_of(w)] = arguments.is_last ? A::ToWord(residue) : A::ToBits(residue);
  }
}

template <class A, Direction kDirection, bool kIsColumnTile>
absl::Status LaunchPass(PassArguments arguments, Stream& stream) {
  const int tile_log = arguments.levels + arguments.width_log;
  const uint32_t words = 1u << tile_log;
  const LaunchShape shape = {
      dim3(1u << (arguments.ring.log_n - tile_log), static_cast<unsigned>(arguments.limbs.count),
           static_cast<unsigned>(arguments.out.outer_count)),
      words >= 256 ? words / 8 : 32, (words + words / 16) * sizeof(typename A::Residue)};
  return Launch(kDirection == Direction::kForward ? "forward_ntt" : "inverse_ntt", stream, shape,
                PassKernel<A, kDirection, kIsColumnTile>, arguments);
}

template <class A, Direction kDirection>
absl::Status LaunchTransform(const RingTables& ring, const LimbPrimes& limbs, ConstPolyView in,
                             PolyView out, Stream& stream) {
  PassArguments whole;
  whole.ring = ring;
  whole.limbs = limbs;
  whole.in = in;
  whole.out = out;
  whole.split = SplitOf(ring.log_n);
  whole.levels = ring.log_n;
  whole.width_log = 0;
  whole.is_first = true;
  whole.is_last = true;
  if (whole.split.upper == 0) {
    return LaunchPass<A, kDirection, /*kIsColumnTile=*/false>(whole, stream);
  }

  PassArguments columns = whole;
  columns.levels = whole.split.upper;
  columns.width_log = kColumnTileLog;
  PassArguments rows = whole;
  rows.levels = whole.split.lower;
  rows.width_log = kRowTileLog - whole.split.lower;
  constexpr bool kColumnsFirst = kDirection == Direction::kForward;
  PassArguments& first = kColumnsFirst ? columns : rows;
  PassArguments& second = kColumnsFirst ? rows : columns;
  first.is_last = false;
  second.is_first = false;
  second.in = out;
  CIPHERD_RETURN_IF_ERROR((LaunchPass<A, kDirection, kColumnsFirst>(first, stream)));
  return LaunchPass<A, kDirection, !kColumnsFirst>(second, stream);
}

}  // namespace

template <class A>
absl::Status AnyDegreeNtt<A>::Forward(const RingTables& ring, const LimbPrimes& limbs,
                                      ConstPolyView in, PolyView out, Stream& stream) {
  return LaunchTransform<A, Direction::kForward>(ring, limbs, in, out, stream);
}

template <class A>
absl::Status AnyDegreeNtt<A>::Inverse(const RingTables& ring, const LimbPrimes& limbs,
                                      ConstPolyView in, PolyView out, Stream& stream) {
  return LaunchTransform<A, Direction::kInverse>(ring, limbs, in, out, stream);
}

template struct AnyDegreeNtt<math::IntegerArithmetic>;
template struct AnyDegreeNtt<math::FmaArithmetic>;

}  // namespace cipherd::kernels::cuda
