// Exact arithmetic modulo a prime q < 2^50 on vectors of doubles, for one target of Highway at a
// time.
//
// A residue is an integer in a double, not always the least: |x| < 4q < 2^52 unless stated. With
// eps = 2^-53 and h = fl(y·w), the product y·w is h + l exactly, l = fma(y, w, -h), and for an
// integer c near y·w/q
//   r = fma(-c, q, h) + l = y·w - c·q
// is exact too: h is an integer (either the product is below 2^53, or its last bit counts 1 or
// more), h - c·q is one of magnitude below |l| + |r| < 2^53, and so is the sum.
//
// How near is c = round(fl(y · fl(w · fl(1/q))))? Three roundings put the rounded value within
// 3·eps·|y·w/q| (and terms of eps^2) of y·w/q. With |y| <= a·q and 0 <= w < q that is at most
// 3 · 2^-53 · 2^50 · a = 0.375·a, so that
//   |r| <= (0.5 + 0.375·a)·q.                                                        (1)
// With the factor's quotient in place of its rounding, c = round(fl(h · fl(1/q))) for 0 <= y, w < q
// has the same bound with a = 1: |r| <= 0.875·q.                                      (2)
// A reduction c = round(fl(x · fl(1/q))) of |x| <= 4q errs by less than 2^-50:
//   |x - c·q| <= (0.5 + 2^-50)·q.                                                    (3)

// Whether the target at hand has what this needs.
#ifndef CIPHERD_HAS_FMA_VECTORS
#define CIPHERD_HAS_FMA_VECTORS (HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3)
#endif

#if defined(CIPHERD_KERNELS_HOST_FMA_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CIPHERD_KERNELS_HOST_FMA_VECTORS_INL_H_
#undef CIPHERD_KERNELS_HOST_FMA_VECTORS_INL_H_
#else
#define CIPHERD_KERNELS_HOST_FMA_VECTORS_INL_H_
#endif

#include <cstdint>

#include "hwy/highway.h"

#if CIPHERD_HAS_FMA_VECTORS
HWY_BEFORE_NAMESPACE();
namespace cipherd::kernels::host::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// q and fl(1 / q).
struct ScalarModulus {
  explicit ScalarModulus(uint64_t prime)
      : q(static_cast<double>(static_cast<int64_t>(prime))), q_inverse(1.0 / q) {}

  double q;
  double q_inverse;
};

template <class D>
struct FmaVectors {
  using V = hn::Vec<D>;
  using DU = hn::RebindToUnsigned<D>;
  using VU = hn::Vec<DU>;

  struct Modulus {
    V q;
    V q_inverse;
  };
  // w in [0, q), and fl(w / q).
  struct Factor {
    V w;
    V quotient;
  };

  static HWY_INLINE Modulus MakeModulus(const ScalarModulus& m) {
    return {hn::Set(D(), m.q), hn::Set(D(), m.q_inverse)};
  }
  static HWY_INLINE Factor MakeFactor(uint64_t w, const ScalarModulus& m) {
    // Signed conversion is the instruction that processors have.
    const double value = static_cast<double>(static_cast<int64_t>(w));
    return {hn::Set(D(), value), hn::Set(D(), value * m.q_inverse)};
  }
  static HWY_INLINE Factor MakeFactor(VU w, const Modulus& m) {
    const V value = FromWords(w);
    return {value, hn::Mul(value, m.q_inverse)};
  }

  // Words below 2^52: their bits under the exponent of 2^52 are 2^52 + word.
  static HWY_INLINE V FromWords(VU words) {
    const V two52 = hn::Set(D(), 0x1p52);
    return hn::Sub(hn::BitCast(D(), hn::Or(words, hn::BitCast(DU(), two52))), two52);
  }
  // Requires integers in [0, 2^52).
  static HWY_INLINE VU ToWords(V x) {
    const V two52 = hn::Set(D(), 0x1p52);
    return hn::Xor(hn::BitCast(DU(), hn::Add(x, two52)), hn::BitCast(DU(), two52));
  }
  static HWY_INLINE V LoadWords(const uint64_t* words) { return FromWords(hn::LoadU(DU(), words)); }
  static HWY_INLINE void StoreWords(V x, uint64_t* words) { hn::StoreU(ToWords(x), DU(), words); }
  // Residues of a transform under way are kept as the bits of their doubles.
  static HWY_INLINE V LoadBits(const uint64_t* bits) {
    return hn::BitCast(D(), hn::LoadU(DU(), bits));
  }
  static HWY_INLINE void StoreBits(V x, uint64_t* bits) {
    hn::StoreU(hn::BitCast(DU(), x), DU(), bits);
  }

  // (3).
  static HWY_INLINE V Reduce(V x, const Modulus& m) {
    return hn::NegMulAdd(hn::Round(hn::Mul(x, m.q_inverse)), m.q, x);
  }
  // Requires |x| < q. Returns the residue in [0, q).
  static HWY_INLINE V AddIfNegative(V x, const Modulus& m) {
    return hn::Add(x, hn::IfThenElseZero(hn::Lt(x, hn::Zero(D())), m.q));
  }
  // Any residue. Returns it in [0, q).
  static HWY_INLINE V Canonical(V x, const Modulus& m) { return AddIfNegative(Reduce(x, m), m); }

  // (1).
  static HWY_INLINE V MultiplyFactor(V y, const Factor& f, const Modulus& m) {
    const V high = hn::Mul(y, f.w);
    const V c = hn::Round(hn::Mul(y, f.quotient));
    return hn::Add(hn::NegMulAdd(c, m.q, high), hn::MulSub(y, f.w, high));
  }
  // (2). Requires a, b in [0, q).
  static HWY_INLINE V Multiply(V a, V b, const Modulus& m) {
    const V high = hn::Mul(a, b);
    const V c = hn::Round(hn::Mul(high, m.q_inverse));
    return hn::Add(hn::NegMulAdd(c, m.q, high), hn::MulSub(a, b, high));
  }

  // (x, y) = (x + w·y, x - w·y).
  static HWY_INLINE void ForwardButterfly(V& x, V& y, const Factor& f, const Modulus& m) {
    const V product = MultiplyFactor(y, f, m);
    y = hn::Sub(x, product);
    x = hn::Add(x, product);
  }
  // (x, y) = (x + y, (x - y)·w).
  static HWY_INLINE void InverseButterfly(V& x, V& y, const Factor& f, const Modulus& m) {
    const V difference = hn::Sub(x, y);
    x = hn::Add(x, y);
    y = MultiplyFactor(difference, f, m);
  }
};

}  // namespace cipherd::kernels::host::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // CIPHERD_HAS_FMA_VECTORS

#endif
