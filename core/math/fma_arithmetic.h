// Arithmetic modulo primes below 2^50 on doubles, with fused multiply-add: a policy for kernel
// bodies as integer_arithmetic.h describes it, whose canonical results are the same words.
//
// A residue is a double that holds an integer, of either sign while a transform is under way. A
// product of residues is exact as the sum of two doubles; its quotient by q is wanted only to
// within one, so that a rounded one does:
//
//   h = fl(x · w)              l = fma(x, w, -h)          x · w = h + l exactly
//   c = round(x · w/q)         r = fma(-c, q, h) + l      r = x · w - c · q exactly
//
// Why, for integers |x| <= 2^52 and |w| <= q/2, q < 2^50, with w/q given as the double
// f = fl(w · fl(1/q)), |f - w/q| <= 2^-52 · (1 + 2^-53) · |w/q|:
//   - |x · w| < 2^101 has its last bit at 1 or above, and the error l of a product is a double.
//   - c is the fused x · f + 1.5 · 2^52, rounded to units of 1 because |x · f| <= 2^51. So
//     |c - x · w/q| <= 1/2 + |x| · 2^-53 · (1 + 2^-53), hence
//     |x · w - c · q| <= (1/2 + |x| · 2^-53 · (1 + 2^-53)) · q <= (1 + 2^-53) · q.        (1)
//   - h is an integer (a multiple of its own unit, or exact), so h - c · q is one, and by (1) and
//     |l| <= 2^47 it is below 2^51: a double, which the fused operation therefore returns exactly.
//     Adding l gives the integer x · w - c · q, below 2^51 too: exact again.
// Six operations, against ten and more integer multiplications for a word of 64 bits.
#pragma once

#include <cstdint>

#include "core/math/host_device.h"
#include "core/math/rounded.h"

namespace cipherd::math {

struct FmaArithmetic {
  static constexpr const char* kName = "fma";
  // Primes are below 2^kMaxBits.
  static constexpr int kMaxBits = 50;
  // Below 2^kNarrowBits, 16q <= 2^52: transforms have room for many levels between reductions.
  static constexpr int kNarrowBits = 48;

  using Residue = double;
  struct Modulus {
    double q;
    double q_inverse;  // fl(1/q)
    bool is_wide;      // q >= 2^kNarrowBits
  };
  // A constant w in [-q/2, q/2], and what an array in memory holds of it.
  struct Factor {
    double value;
    double over_q;  // fl(w · fl(1/q))
  };
  using Root = double;
  // A sum of products: exact modulo 2^64, and rounded.
  struct ProductSum {
    uint64_t low = 0;
    double rounded = 0;
  };

  static CIPHERD_HD Modulus MakeModulus(double q, double q_inverse) {
    return {q, q_inverse, q >= 0x1p48};
  }
  static CIPHERD_HD uint64_t ModulusWord(const Modulus& m) { return WordOfDouble(m.q); }

  // Requires word < 2^52. Returns it as an operand; canonical for every modulus above it.
  static CIPHERD_HD Residue FromWord(uint64_t word) { return DoubleOfWord(word); }
  // Requires a canonical. Returns the word in [0, q).
  static CIPHERD_HD uint64_t ToWord(Residue a) { return WordOfDouble(a); }
  static CIPHERD_HD Residue FromBits(uint64_t bits) { return std::bit_cast<double>(bits); }
  static CIPHERD_HD uint64_t ToBits(Residue a) { return std::bit_cast<uint64_t>(a); }

  // Any v. Returns v mod q, canonical.
  static CIPHERD_HD Residue FromSigned(int64_t v, const Modulus& m) {
    // v = high · 2^32 + low, low below 2^32; the product's quotient is below 2^32.
    const auto high = static_cast<double>(static_cast<int32_t>(v >> 32));
    const double low = DoubleOfWord(static_cast<uint64_t>(v) & 0xffffffffu);
    const double radix = Nearest(0x1p32, m);
    return Canonical(Nearest(RoundedSum(MultiplyAny(high, radix, m), low), m), m);
  }
  // Requires value < q. The quotient of the integer policy is not needed.
  static CIPHERD_HD Factor MakeFactor(uint64_t value, uint64_t /*shoup*/, const Modulus& m) {
    const double w = DoubleOfWord(value);
    return FactorOfRoot(w > 0.5 * m.q ? RoundedSum(w, -m.q) : w, m);
  }
  // Requires |root| <= q/2.
  static CIPHERD_HD Factor FactorOfRoot(Root root, const Modulus& m) {
    return {root, RoundedProduct(root, m.q_inverse)};
  }
  // Requires a canonical.
  static CIPHERD_HD double ToDouble(Residue a) { return a; }

  // Require canonical operands, return a canonical residue.
  static CIPHERD_HD Residue Add(Residue a, Residue b, const Modulus& m) {
    const double sum = RoundedSum(a, b);
    return sum >= m.q ? RoundedSum(sum, -m.q) : sum;
  }
  static CIPHERD_HD Residue Subtract(Residue a, Residue b, const Modulus& m) {
    return Canonical(RoundedSum(a, -b), m);
  }
  static CIPHERD_HD Residue Negate(Residue a, const Modulus& m) {
    return a == 0 ? 0 : RoundedSum(m.q, -a);
  }
  static CIPHERD_HD Residue Multiply(Residue a, Residue b, const Modulus& m) {
    return Canonical(MultiplyAny(a, b, m), m);
  }
  static CIPHERD_HD Residue MultiplyFactor(Residue a, const Factor& w, const Modulus& m) {
    return Canonical(MultiplyLazy(a, w, m), m);
  }
  // Requires a, b canonical. Returns (a - b) · w, canonical.
  static CIPHERD_HD Residue SubtractMultiplyFactor(Residue a, Residue b, const Factor& w,
                                                   const Modulus& m) {
    return MultiplyFactor(RoundedSum(a, -b), w, m);
  }

  // sum += a · b. Requires integers |a| <= 2^50, |b| <= q or the other way round, and at most
  // kMaxProductTerms + 1 terms.
  static CIPHERD_HD void AddToSum(Residue a, Residue b, ProductSum& sum) {
    sum.low +=
        static_cast<uint64_t>(IntegerOfDouble(a)) * static_cast<uint64_t>(IntegerOfDouble(b));
    sum.rounded = FusedMultiplyAdd(a, b, sum.rounded);
  }
  // The same of words.
  static CIPHERD_HD void AddWordsToSum(uint64_t a, uint64_t b, ProductSum& sum) {
    sum.low += a * b;
    sum.rounded = FusedMultiplyAdd(DoubleOfWord(a), DoubleOfWord(b), sum.rounded);
  }
  // Returns sum mod q, canonical.
  static CIPHERD_HD Residue ReduceSum(const ProductSum& sum, const Modulus& m) {
    // Of n <= 65 products below 2^50 · q, each of n roundings errs by at most n · 2^50 · q · 2^-53,
    // and so do the two of the quotient: it is off by less than n · (n + 2) / 8 + 1 < 550. So the
    // first remainder is below 550 q < 2^60 in magnitude, and the low word is all of it; its
    // quotient, found again from a number so much smaller, is off by less than 1/2 + 2^-40.
    const auto q = static_cast<int64_t>(m.q);
    const auto quotient = static_cast<int64_t>(RoundedProduct(sum.rounded, m.q_inverse));
    const uint64_t remainder = sum.low - static_cast<uint64_t>(quotient) * static_cast<uint64_t>(q);
    const auto first = static_cast<double>(static_cast<int64_t>(remainder));
    const int64_t rest = IntegerOfDouble(RoundedToInteger(first, m.q_inverse));
    const auto second = static_cast<double>(
        static_cast<int64_t>(remainder - static_cast<uint64_t>(rest) * static_cast<uint64_t>(q)));
    return Canonical(second, m);
  }

  // Sums of products x · word modulo one q, x a residue that FinishForProduct gave, at most
  // kMaxLazyTerms of them: each is reduced to 3/4 q at most, so that ten stay below 2^53.
  using LazySum = double;
  static constexpr int kMaxLazyTerms = 10;
  static CIPHERD_HD Residue FinishForProduct(Residue x, const Modulus& m) { return Nearest(x, m); }
  static CIPHERD_HD void AddToLazySum(Residue x, uint64_t word, LazySum& sum, const Modulus& m) {
    sum = RoundedSum(sum, MultiplyAny(x, DoubleOfWord(word), m));
  }
  // Returns sum mod q, canonical.
  static CIPHERD_HD Residue ReduceLazySum(const LazySum& sum, const Modulus& m) {
    return Canonical(Nearest(sum, m), m);
  }

  // (x, y) = (x + w·y, x - w·y). Of residues up to B·q this makes residues up to
  // (B + 1/2 + B · q · 2^-53) · q by (1), which needs B·q <= 2^52:
  //   q < 2^50: from 1 to 1.63, 2.33, 3.12, 4.01: four levels after a reduction;
  //   q < 2^48: B_k+1 = 33/32 B_k + 1/2 gives B_17 < 12.8 from 1: the whole of a transform.
  static CIPHERD_HD void ForwardButterfly(Residue& x, Residue& y, const Factor& w,
                                          const Modulus& m) {
    const double product = MultiplyLazy(y, w, m);
    y = RoundedSum(x, -product);
    x = RoundedSum(x, product);
  }
  // Whether residues have to be settled between at most four levels of a forward transform, and
  // sums between two and two levels of an inverse one.
  static CIPHERD_HD bool NeedsSettling(const Modulus& m) { return m.is_wide; }
  static CIPHERD_HD Residue Settle(Residue x, const Modulus& m) { return Nearest(x, m); }
  // Requires x of a forward transform. Returns it canonical.
  static CIPHERD_HD Residue FinishForward(Residue x, const Modulus& m) {
    return Canonical(Nearest(x, m), m);
  }

  // (x, y) = (x + y, (x - y)·w). Of residues up to B·q, 2B·q <= 2^52, the sum is up to 2B·q and
  // the product up to q by (1): two levels after a reduction for q < 2^50, four for q < 2^48.
  static CIPHERD_HD void InverseButterfly(Residue& x, Residue& y, const Factor& w,
                                          const Modulus& m) {
    const double difference = RoundedSum(x, -y);
    x = RoundedSum(x, y);
    y = MultiplyLazy(difference, w, m);
  }
  // Sums after at most four levels.
  static CIPHERD_HD Residue SettleInverseNode(Residue x, const Modulus& m) { return Nearest(x, m); }
  // (x, y) = ((x + y)·v, (x - y)·w). Requires the operands of a fourth level; returns both
  // canonical. (|x ± y| <= 16q - 16 or 4q - 4 keeps (1) below q.)
  static CIPHERD_HD void LastInverseButterfly(Residue& x, Residue& y, const Factor& v,
                                              const Factor& w, const Modulus& m) {
    const double sum = RoundedSum(x, y);
    const double difference = RoundedSum(x, -y);
    x = MultiplyFactor(sum, v, m);
    y = MultiplyFactor(difference, w, m);
  }

  // Requires an integer |a| <= 2^52. Returns a · w mod q, in magnitude as (1) says.
  static CIPHERD_HD Residue MultiplyLazy(Residue a, const Factor& w, const Modulus& m) {
    const double high = RoundedProduct(a, w.value);
    const double low = FusedMultiplyAdd(a, w.value, -high);
    const double quotient = RoundedToInteger(a, w.over_q);
    return RoundedSum(FusedMultiplyAdd(-quotient, m.q, high), low);
  }

  // Requires an integer |x| <= 2^53, |x| <= 2^51 · q. Returns x mod q in [-q/2, q/2], or past that
  // by less than 2^-45 · q where |x| <= 64q.
  static CIPHERD_HD Residue Nearest(Residue x, const Modulus& m) {
    return FusedMultiplyAdd(-RoundedToInteger(x, m.q_inverse), m.q, x);
  }

 private:
  // Requires an integer in (-q, q).
  static CIPHERD_HD Residue Canonical(Residue a, const Modulus& m) {
    return a < 0 ? RoundedSum(a, m.q) : a;
  }

  // Requires integers |a|, |b| <= q, or |a| <= 2^32 and |b| <= q. Returns a · b mod q, of magnitude
  // at most 3/4 q: the quotient fl(h · fl(1/q)) of at most 2^50 is off by 1/2 for its rounding to
  // an integer and by 2^50 · (2^-53 + 2^-53) for those of h and 1/q.
  static CIPHERD_HD Residue MultiplyAny(Residue a, Residue b, const Modulus& m) {
    const double high = RoundedProduct(a, b);
    const double low = FusedMultiplyAdd(a, b, -high);
    const double quotient = RoundedToInteger(high, m.q_inverse);
    return RoundedSum(FusedMultiplyAdd(-quotient, m.q, high), low);
  }
};

}  // namespace cipherd::math
