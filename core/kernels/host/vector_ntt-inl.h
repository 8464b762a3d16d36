// The transforms of one limb on vectors, in the passes of host/scalar_ntt.h: two levels at a time
// down to blocks that fit half of a first-level cache, then each block to its end. Where log2 N is
// odd, one more level stands at the root.
//
// Ranges, as multiples of q (fma_vectors-inl.h, with rounding terms of 2^-50 left out):
//   forward  words are in [0, 1). A pass takes |x| <= 3.88 in: the operands that are added are
//            reduced to 0.5, the others are multiplied: 0.5 + 0.375·3.88 = 1.955 at most, so that
//            one level gives |x| <= 2.455, and the next 2.455 + 0.5 + 0.375·2.455 = 3.88.
//            The root's pass does not reduce: 1 + 0.875 = 1.875, then 1.875 + 0.5 + 0.375·1.875 =
//            3.08.
//   inverse  a pass reduces what it takes to 0.5: sums are at most 1 and then 2, products of
//            differences at most 0.5 + 0.375·2 = 1.25, and their sums 1.75. The pass over the
//            leaves takes words in [0, 1): at most 4.
//
// Nodes of four levels, 16 words in four rows of four, stay in registers: two levels work across
// rows, then, rows and columns exchanged, two within.
#if defined(CIPHERD_KERNELS_HOST_VECTOR_NTT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CIPHERD_KERNELS_HOST_VECTOR_NTT_INL_H_
#undef CIPHERD_KERNELS_HOST_VECTOR_NTT_INL_H_
#else
#define CIPHERD_KERNELS_HOST_VECTOR_NTT_INL_H_
#endif

#include <cstdint>

#include "core/kernels/host/fma_vectors-inl.h"
#include "core/ring/ring_tables.h"
#include "hwy/highway.h"

#if CIPHERD_HAS_FMA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace cipherd::kernels::host::HWY_NAMESPACE {

class VectorTransform {
  using D = hn::ScalableTag<double>;
  using DU = hn::RebindToUnsigned<D>;
  using A = FmaVectors<D>;
  using V = A::V;
  using Modulus = A::Modulus;
  using Factor = A::Factor;

 public:
  explicit VectorTransform(const ring::PrimeConstants& prime) : prime_(prime), modulus_(prime.q) {}

  // Require levels >= kMinVectorLogN; `in` may be `out`.
  void ForwardTree(int levels, const uint64_t* in, uint64_t* out) const {
    if (levels % 2 == 0) {
      ForwardPass</*kIsRoot=*/true>(kRoot, levels, in, out);
      ForwardChildren(kRoot, levels, out);
      return;
    }
    ForwardRootLevel(levels, in, out);
    for (uint32_t child = 0; child < 2; ++child) {
      ForwardBelow(2 * kRoot + child, levels - 1, out + (int64_t{child} << (levels - 1)));
    }
  }
  void InverseTree(int levels, const uint64_t* in, uint64_t* out) const {
    if (levels % 2 == 0) {
      InverseChildren(kRoot, levels, in, out);
      InversePass</*kIsRoot=*/true>(kRoot, levels, out);
      return;
    }
    for (uint32_t child = 0; child < 2; ++child) {
      const int64_t offset = int64_t{child} << (levels - 1);
      InverseBelow(2 * kRoot + child, levels - 1, in + offset, out + offset);
    }
    InverseRootLevel(levels, out);
  }

 private:
  static constexpr uint32_t kRoot = 1;
  // 2^10 words are 8 KiB.
  static constexpr int kCachedLevels = 10;

  void ForwardChildren(uint32_t node, int levels, uint64_t* data) const {
    for (uint32_t child = 0; child < 4; ++child) {
      ForwardBelow(4 * node + child, levels - 2, data + (int64_t{child} << (levels - 2)));
    }
  }
  void InverseChildren(uint32_t node, int levels, const uint64_t* in, uint64_t* out) const {
    for (uint32_t child = 0; child < 4; ++child) {
      const int64_t offset = int64_t{child} << (levels - 2);
      InverseBelow(4 * node + child, levels - 2, in + offset, out + offset);
    }
  }

  // An even number of levels, at least 6.
  void ForwardBelow(uint32_t node, int levels, uint64_t* data) const {
    if (levels > kCachedLevels) {
      ForwardPass(node, levels, data, data);
      ForwardChildren(node, levels, data);
      return;
    }
    for (int above = 0; levels - above > 4; above += 2) {
      for (uint32_t g = 0; g < uint32_t{1} << above; ++g) {
        uint64_t* words = data + (int64_t{g} << (levels - above));
        ForwardPass((node << above) + g, levels - above, words, words);
      }
    }
    ForwardLeaves(node << (levels - 4), 1 << (levels - 4), data);
  }

  void InverseBelow(uint32_t node, int levels, const uint64_t* in, uint64_t* out) const {
    if (levels > kCachedLevels) {
      InverseChildren(node, levels, in, out);
      InversePass(node, levels, out);
      return;
    }
    InverseLeaves(node << (levels - 4), 1 << (levels - 4), in, out);
    for (int above = levels - 6; above >= 0; above -= 2) {
      for (uint32_t g = 0; g < uint32_t{1} << above; ++g) {
        InversePass((node << above) + g, levels - above, out + (int64_t{g} << (levels - above)));
      }
    }
  }

  Factor Root(const uint64_t* roots, uint32_t node) const {
    return A::MakeFactor(roots[node], modulus_);
  }

  // Two levels from `node` down. The root reads words.
  template <bool kIsRoot = false>
  HWY_INLINE void ForwardPass(uint32_t node, int levels, const uint64_t* in, uint64_t* out) const {
    const auto m = A::MakeModulus(modulus_);
    const auto f0 = Root(prime_.psi_powers, node);
    const auto f1 = Root(prime_.psi_powers, 2 * node);
    const auto f2 = Root(prime_.psi_powers, 2 * node + 1);
    const int64_t stride = int64_t{1} << (levels - 2);
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(D()));
    for (int64_t j = 0; j < stride; j += lanes) {
      const uint64_t* from = in + j;
      V x0, x1, x2, x3;
      if constexpr (kIsRoot) {
        x0 = A::LoadWords(from);
        x1 = A::LoadWords(from + stride);
        x2 = A::LoadWords(from + 2 * stride);
        x3 = A::LoadWords(from + 3 * stride);
      } else {
        x0 = A::Reduce(A::LoadBits(from), m);
        x1 = A::Reduce(A::LoadBits(from + stride), m);
        x2 = A::LoadBits(from + 2 * stride);
        x3 = A::LoadBits(from + 3 * stride);
      }
      A::ForwardButterfly(x0, x2, f0, m);
      A::ForwardButterfly(x1, x3, f0, m);
      A::ForwardButterfly(x0, x1, f1, m);
      A::ForwardButterfly(x2, x3, f2, m);
      uint64_t* to = out + j;
      A::StoreBits(x0, to);
      A::StoreBits(x1, to + stride);
      A::StoreBits(x2, to + 2 * stride);
      A::StoreBits(x3, to + 3 * stride);
    }
  }

  // Two levels up to `node`; to the root with division by N, leaving words.
  template <bool kIsRoot = false>
  HWY_INLINE void InversePass(uint32_t node, int levels, uint64_t* data) const {
    const auto m = A::MakeModulus(modulus_);
    const auto f0 = kIsRoot ? A::MakeFactor(prime_.n_inverse_root, modulus_)
                            : Root(prime_.psi_inverse_powers, node);
    const auto f1 = Root(prime_.psi_inverse_powers, 2 * node);
    const auto f2 = Root(prime_.psi_inverse_powers, 2 * node + 1);
    const auto n_inverse = A::MakeFactor(prime_.n_inverse, modulus_);
    const int64_t stride = int64_t{1} << (levels - 2);
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(D()));
    for (int64_t j = 0; j < stride; j += lanes) {
      uint64_t* at = data + j;
      auto x0 = A::Reduce(A::LoadBits(at), m);
      auto x1 = A::Reduce(A::LoadBits(at + stride), m);
      auto x2 = A::Reduce(A::LoadBits(at + 2 * stride), m);
      auto x3 = A::Reduce(A::LoadBits(at + 3 * stride), m);
      A::InverseButterfly(x0, x1, f1, m);
      A::InverseButterfly(x2, x3, f2, m);
      A::InverseButterfly(x0, x2, f0, m);
      A::InverseButterfly(x1, x3, f0, m);
      if constexpr (kIsRoot) {
        A::StoreWords(A::Canonical(A::MultiplyFactor(x0, n_inverse, m), m), at);
        A::StoreWords(A::Canonical(A::MultiplyFactor(x1, n_inverse, m), m), at + stride);
        A::StoreWords(A::Canonical(x2, m), at + 2 * stride);
        A::StoreWords(A::Canonical(x3, m), at + 3 * stride);
      } else {
        A::StoreBits(x0, at);
        A::StoreBits(x1, at + stride);
        A::StoreBits(x2, at + 2 * stride);
        A::StoreBits(x3, at + 3 * stride);
      }
    }
  }

  // The root's level alone.
  void ForwardRootLevel(int levels, const uint64_t* in, uint64_t* out) const {
    const auto m = A::MakeModulus(modulus_);
    const auto f = Root(prime_.psi_powers, kRoot);
    const int64_t stride = int64_t{1} << (levels - 1);
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(D()));
    for (int64_t j = 0; j < stride; j += lanes) {
      auto x = A::LoadWords(in + j);
      auto y = A::LoadWords(in + j + stride);
      A::ForwardButterfly(x, y, f, m);
      A::StoreBits(x, out + j);
      A::StoreBits(y, out + j + stride);
    }
  }
  void InverseRootLevel(int levels, uint64_t* data) const {
    const auto m = A::MakeModulus(modulus_);
    const auto f = A::MakeFactor(prime_.n_inverse_root, modulus_);
    const auto n_inverse = A::MakeFactor(prime_.n_inverse, modulus_);
    const int64_t stride = int64_t{1} << (levels - 1);
    const int64_t lanes = static_cast<int64_t>(hn::Lanes(D()));
    for (int64_t j = 0; j < stride; j += lanes) {
      auto x = A::LoadBits(data + j);
      auto y = A::LoadBits(data + j + stride);
      A::InverseButterfly(x, y, f, m);
      A::StoreWords(A::Canonical(A::MultiplyFactor(x, n_inverse, m), m), data + j);
      A::StoreWords(A::Canonical(y, m), data + j + stride);
    }
  }

  // Nodes of 16 words that fill four vectors: row r of each, side by side, is vector r.
  static constexpr uint32_t kNodesAtOnce = static_cast<uint32_t>(hn::MaxLanes(D())) / 4;
  struct Rows {
    V row[4];
  };

  // Entry `first` + 4·r + c of node g is lane 4·g + c of row r.
  static HWY_INLINE Rows LoadRows(const uint64_t* data) {
    Rows rows;
    for (int r = 0; r < 4; ++r) {
      if constexpr (kNodesAtOnce == 1) {
        rows.row[r] = A::LoadBits(data + 4 * r);
      } else {
        const hn::Half<DU> half;
        rows.row[r] = hn::BitCast(D(), hn::Combine(DU(), hn::LoadU(half, data + 16 + 4 * r),
                                                   hn::LoadU(half, data + 4 * r)));
      }
    }
    return rows;
  }
  static HWY_INLINE void StoreRows(const Rows& rows, uint64_t* data) {
    for (int r = 0; r < 4; ++r) {
      if constexpr (kNodesAtOnce == 1) {
        A::StoreBits(rows.row[r], data + 4 * r);
      } else {
        const hn::Half<DU> half;
        const auto bits = hn::BitCast(DU(), rows.row[r]);
        hn::StoreU(hn::LowerHalf(half, bits), half, data + 4 * r);
        hn::StoreU(hn::UpperHalf(half, bits), half, data + 16 + 4 * r);
      }
    }
  }
  // Exchanges rows and columns of each node.
  static HWY_INLINE void Transpose(Rows& x) {
    const D d;
    const V a = hn::InterleaveLower(d, x.row[0], x.row[1]);
    const V b = hn::InterleaveUpper(d, x.row[0], x.row[1]);
    const V c = hn::InterleaveLower(d, x.row[2], x.row[3]);
    const V e = hn::InterleaveUpper(d, x.row[2], x.row[3]);
    x.row[0] = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(c), a);
    x.row[1] = hn::OddEvenBlocks(hn::SwapAdjacentBlocks(e), b);
    x.row[2] = hn::OddEvenBlocks(c, hn::SwapAdjacentBlocks(a));
    x.row[3] = hn::OddEvenBlocks(e, hn::SwapAdjacentBlocks(b));
  }

  // Roots for two levels: of a node and of its two children, in every lane of the node.
  struct Factors {
    Factor f0, f1, f2;
  };
  // Nodes from `node` on, four lanes each.
  HWY_INLINE Factors RowFactors(const uint64_t* roots, uint32_t node, const Modulus& m) const {
    if constexpr (kNodesAtOnce == 1) {
      return {Root(roots, node), Root(roots, 2 * node), Root(roots, 2 * node + 1)};
    } else {
      const DU du;
      HWY_ALIGN static constexpr uint64_t kEach[8] = {0, 0, 0, 0, 1, 1, 1, 1};
      HWY_ALIGN static constexpr uint64_t kEven[8] = {0, 0, 0, 0, 2, 2, 2, 2};
      HWY_ALIGN static constexpr uint64_t kOdd[8] = {1, 1, 1, 1, 3, 3, 3, 3};
      const auto parents = hn::LoadU(du, roots + node);
      const auto children = hn::LoadU(du, roots + 2 * node);
      const auto pick = [&](auto from, const uint64_t* indices) HWY_ATTR {
        return A::MakeFactor(hn::TableLookupLanes(from, hn::SetTableIndices(du, indices)), m);
      };
      return {pick(parents, kEach), pick(children, kEven), pick(children, kOdd)};
    }
  }
  // Nodes from `node` on, a lane each.
  HWY_INLINE Factors ColumnFactors(const uint64_t* roots, uint32_t node, const Modulus& m) const {
    const DU du;
    A::VU even, odd;
    hn::LoadInterleaved2(du, roots + 2 * int64_t{node}, even, odd);
    return {A::MakeFactor(hn::LoadU(du, roots + node), m), A::MakeFactor(even, m),
            A::MakeFactor(odd, m)};
  }

  static HWY_INLINE void ForwardRows(Rows& x, const Factors& f, const Modulus& m) {
    A::ForwardButterfly(x.row[0], x.row[2], f.f0, m);
    A::ForwardButterfly(x.row[1], x.row[3], f.f0, m);
    A::ForwardButterfly(x.row[0], x.row[1], f.f1, m);
    A::ForwardButterfly(x.row[2], x.row[3], f.f2, m);
  }
  static HWY_INLINE void InverseRows(Rows& x, const Factors& f, const Modulus& m) {
    A::InverseButterfly(x.row[0], x.row[1], f.f1, m);
    A::InverseButterfly(x.row[2], x.row[3], f.f2, m);
    A::InverseButterfly(x.row[0], x.row[2], f.f0, m);
    A::InverseButterfly(x.row[1], x.row[3], f.f0, m);
  }

  // The last four levels of `count` nodes from `node` on, to words.
  void ForwardLeaves(uint32_t node, uint32_t count, uint64_t* data) const {
    const auto m = A::MakeModulus(modulus_);
    for (uint32_t g = 0; g < count; g += kNodesAtOnce) {
      uint64_t* at = data + 16 * int64_t{g};
      Rows x = LoadRows(at);
      x.row[0] = A::Reduce(x.row[0], m);
      x.row[1] = A::Reduce(x.row[1], m);
      ForwardRows(x, RowFactors(prime_.psi_powers, node + g, m), m);
      Transpose(x);
      x.row[0] = A::Reduce(x.row[0], m);
      x.row[1] = A::Reduce(x.row[1], m);
      ForwardRows(x, ColumnFactors(prime_.psi_powers, 4 * (node + g), m), m);
      Transpose(x);
      for (V& row : x.row) row = hn::BitCast(D(), A::ToWords(A::Canonical(row, m)));
      StoreRows(x, at);
    }
  }
  // The first four levels, from words.
  void InverseLeaves(uint32_t node, uint32_t count, const uint64_t* in, uint64_t* out) const {
    const auto m = A::MakeModulus(modulus_);
    for (uint32_t g = 0; g < count; g += kNodesAtOnce) {
      Rows x = LoadRows(in + 16 * int64_t{g});
      for (V& row : x.row) row = A::FromWords(hn::BitCast(DU(), row));
      Transpose(x);
      InverseRows(x, ColumnFactors(prime_.psi_inverse_powers, 4 * (node + g), m), m);
      Transpose(x);
      for (V& row : x.row) row = A::Reduce(row, m);
      InverseRows(x, RowFactors(prime_.psi_inverse_powers, node + g, m), m);
      StoreRows(x, out + 16 * int64_t{g});
    }
  }

  const ring::PrimeConstants& prime_;
  const ScalarModulus modulus_;
};

}  // namespace cipherd::kernels::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // CIPHERD_HAS_FMA_VECTORS

#endif
