// Arithmetic modulo primes below 2^61 on 64-bit words: the policy that kernel bodies are written
// against.
//
// A body is a template over an arithmetic A and touches residues only through A, so that the same
// mathematics runs on another number format. What A offers:
//   Residue        a residue in registers. "Canonical" is [0, q); transforms use wider ranges of
//   their own,
//                  which no body looks at.
//   Modulus        what reductions need to know of a prime.
//   Factor         a multiplicative constant, prepared; Root, what an array of them holds.
//   ProductSum     a sum of up to kMaxProductTerms products, zero when value-initialised; LazySum,
//                  one of fewer products modulo one prime.
//   FromWord, ToWord    between the words of memory, canonical residues in [0, q), and registers.
// How an arithmetic finds its constants in RingTables is core/kernels/arithmetic_tables.h.
#pragma once

#include <cstdint>

#include "core/math/barrett.h"
#include "core/math/host_device.h"
#include "core/math/modular.h"
#include "core/math/mulhi.h"
#include "core/math/product_modulus.h"
#include "core/math/product_sum.h"
#include "core/math/shoup.h"

namespace cipherd::math {

struct IntegerArithmetic {
  static constexpr const char* kName = "integer";

  using Residue = uint64_t;
  using Modulus = ProductModulus;
  struct Factor {
    uint64_t value;
    uint64_t shoup;
  };
  using Root = Factor;
  using ProductSum = uint128_t;

  // Requires word < 2^61. Returns it as an operand; canonical for every modulus above it.
  static CIPHERD_HD Residue FromWord(uint64_t word) { return word; }
  // Requires a canonical. Returns the word in [0, q).
  static CIPHERD_HD uint64_t ToWord(Residue a) { return a; }
  // Between any residue, also of a transform under way, and the word that keeps it in memory
  // meanwhile.
  static CIPHERD_HD Residue FromBits(uint64_t bits) { return bits; }
  static CIPHERD_HD uint64_t ToBits(Residue a) { return a; }
  // Any v. Returns v mod q, canonical.
  static CIPHERD_HD Residue FromSigned(int64_t v, const Modulus& m) {
    // Also right for -2^63, whose magnitude is 2^63.
    const uint64_t magnitude = v < 0 ? uint64_t{0} - static_cast<uint64_t>(v) : v;
    const uint64_t residue = Reduce64(magnitude, m);
    return v < 0 ? NegateMod(residue, m.q) : residue;
  }
  // Requires value < q, shoup = floor(value · 2^64 / q).
  static CIPHERD_HD Factor MakeFactor(uint64_t value, uint64_t shoup, const Modulus&) {
    return {value, shoup};
  }
  static CIPHERD_HD Factor FactorOfRoot(const Root& root, const Modulus&) { return root; }
  static CIPHERD_HD uint64_t ModulusWord(const Modulus& m) { return m.q; }
  // Requires a canonical. Returns the nearest double.
  static CIPHERD_HD double ToDouble(Residue a) {
    // Signed conversion is the instruction that processors have.
    return static_cast<double>(static_cast<int64_t>(a));
  }

  // Require canonical operands, return a canonical residue.
  static CIPHERD_HD Residue Add(Residue a, Residue b, const Modulus& m) {
    return AddMod(a, b, m.q);
  }
  static CIPHERD_HD Residue Subtract(Residue a, Residue b, const Modulus& m) {
    return SubMod(a, b, m.q);
  }
  static CIPHERD_HD Residue Negate(Residue a, const Modulus& m) { return NegateMod(a, m.q); }
  static CIPHERD_HD Residue Multiply(Residue a, Residue b, const Modulus& m) {
    return MulModProduct(a, b, m);
  }
  static CIPHERD_HD Residue MultiplyFactor(Residue a, const Factor& w, const Modulus& m) {
    return MulShoup(a, w.value, w.shoup, m.q);
  }
  // Requires a, b canonical. Returns (a - b) · w, canonical.
  static CIPHERD_HD Residue SubtractMultiplyFactor(Residue a, Residue b, const Factor& w,
                                                   const Modulus& m) {
    return MulShoup(a + m.q - b, w.value, w.shoup, m.q);
  }

  // sum += a · b. Requires a, b < 2^61, reduced modulo any prime, and at most kMaxProductTerms
  // terms; one more is allowed where one of its operands is at most 64.
  static CIPHERD_HD void AddToSum(Residue a, Residue b, ProductSum& sum) { AddProduct(a, b, sum); }
  // The same of words.
  static CIPHERD_HD void AddWordsToSum(uint64_t a, uint64_t b, ProductSum& sum) {
    AddProduct(a, b, sum);
  }
  // Returns sum mod q, canonical.
  static CIPHERD_HD Residue ReduceSum(const ProductSum& sum, const Modulus& m) {
    return Reduce128(sum, m);
  }

  // Sums of products x · word modulo one q, x a residue that FinishForProduct gave, at most
  // kMaxLazyTerms of them.
  using LazySum = ProductSum;
  static constexpr int kMaxLazyTerms = kMaxProductTerms;
  static CIPHERD_HD Residue FinishForProduct(Residue x, const Modulus& m) {
    return FinishForward(x, m);
  }
  static CIPHERD_HD void AddToLazySum(Residue x, uint64_t word, LazySum& sum, const Modulus&) {
    AddProduct(x, word, sum);
  }
  // Returns sum mod q, canonical.
  static CIPHERD_HD Residue ReduceLazySum(const LazySum& sum, const Modulus& m) {
    return Reduce128(sum, m);
  }

  // (x, y) = (x + w·y, x - w·y). Harvey, "Faster arithmetic for number-theoretic transforms", 2014:
  // requires x, y in [0, 4q), returns both in [0, 4q).
  static CIPHERD_HD void ForwardButterfly(Residue& x, Residue& y, const Factor& w,
                                          const Modulus& m) {
    const uint64_t reduced = ReduceOnce(x, 2 * m.q);
    const uint64_t product = MulShoupLazy(y, w.value, w.shoup, m.q);
    x = reduced + product;
    y = reduced - product + 2 * m.q;
  }
  // This policy needs nothing between the levels of a transform.
  static CIPHERD_HD bool NeedsSettling(const Modulus&) { return false; }
  static CIPHERD_HD Residue Settle(Residue x, const Modulus&) { return x; }
  // Requires x in [0, 4q). Returns it canonical.
  static CIPHERD_HD Residue FinishForward(Residue x, const Modulus& m) {
    return ReduceOnce(ReduceOnce(x, 2 * m.q), m.q);
  }
  // (x, y) = (x + y, (x - y)·w). Requires x, y in [0, 2q), returns both in [0, 2q).
  static CIPHERD_HD void InverseButterfly(Residue& x, Residue& y, const Factor& w,
                                          const Modulus& m) {
    const uint64_t difference = x - y + 2 * m.q;
    x = ReduceOnce(x + y, 2 * m.q);
    y = MulShoupLazy(difference, w.value, w.shoup, m.q);
  }
  // Sums after at most four levels of an inverse transform: nor there.
  static CIPHERD_HD Residue SettleInverseNode(Residue x, const Modulus&) { return x; }
  // (x, y) = ((x + y)·v, (x - y)·w). Requires x, y in [0, 2q), returns both canonical.
  static CIPHERD_HD void LastInverseButterfly(Residue& x, Residue& y, const Factor& v,
                                              const Factor& w, const Modulus& m) {
    const uint64_t sum = x + y;
    const uint64_t difference = x - y + 2 * m.q;
    x = MulShoup(sum, v.value, v.shoup, m.q);
    y = MulShoup(difference, w.value, w.shoup, m.q);
  }
};

}  // namespace cipherd::math
