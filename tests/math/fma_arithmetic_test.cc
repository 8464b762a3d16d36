// The policy on doubles against big integers: at the corners of what each function may be given,
// after as many lazy levels and sums as it allows, and at random between.
#include "core/math/fma_arithmetic.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "core/math/product_sum.h"
#include "gtest/gtest.h"
#include "tests/math/mpz.h"

namespace cipherd::math {
namespace {

using A = FmaArithmetic;
using testing::Residue;
using testing::ToMpz;

// The greatest and least odd moduli of the ranges that the policy tells apart, and others; nothing
// here needs them to be prime.
const std::vector<uint64_t> kModuli = {97,
                                       1073692673,
                                       (uint64_t{1} << 45) + 1,
                                       (uint64_t{1} << 48) - 1,
                                       (uint64_t{1} << 48) + 1,
                                       (uint64_t{1} << 49) - 1,
                                       (uint64_t{1} << 50) - 27,
                                       (uint64_t{1} << 50) - 1};

A::Modulus ModulusOf(uint64_t q) {
  const auto value = static_cast<double>(q);
  return A::MakeModulus(value, 1.0 / value);
}

mpz_class ToMpz(double integer) {
  EXPECT_EQ(integer, std::nearbyint(integer));
  return mpz_class(integer);
}

uint64_t ResidueOf(double integer, uint64_t q) { return Residue(ToMpz(integer), q); }

// Integers in [-factor·q, factor·q] and [-2^52, 2^52]: multiples of q and their neighbours, and
// some at random.
std::vector<double> Corners(uint64_t q, double factor, std::mt19937_64& random) {
  const double bound = std::min(factor * static_cast<double>(q), 0x1p52);
  std::vector<double> corners = {bound, -bound};
  for (double k = 0; k <= factor; ++k) {
    for (double offset : {-1.0, 0.0, 1.0, std::floor(static_cast<double>(q) / 2)}) {
      const double corner = k * static_cast<double>(q) + offset;
      if (std::abs(corner) > bound) continue;
      corners.push_back(corner);
      corners.push_back(-corner);
    }
  }
  for (int i = 0; i < 40; ++i) {
    const auto magnitude = static_cast<double>(random() % static_cast<uint64_t>(bound));
    corners.push_back(i % 2 == 0 ? magnitude : -magnitude);
  }
  return corners;
}

std::vector<uint64_t> Constants(uint64_t q, std::mt19937_64& random) {
  std::vector<uint64_t> constants = {0, 1, q / 3, q / 2, q / 2 + 1, q - 1};
  for (int i = 0; i < 20; ++i) constants.push_back(random() % q);
  return constants;
}

TEST(FmaArithmetic, WordsAndDoublesConvertExactly) {
  for (uint64_t word :
       {uint64_t{0}, uint64_t{1}, (uint64_t{1} << 50) - 1, (uint64_t{1} << 52) - 1}) {
    EXPECT_EQ(DoubleOfWord(word), static_cast<double>(word));
    EXPECT_EQ(WordOfDouble(static_cast<double>(word)), word);
  }
  for (int64_t integer : {int64_t{0}, int64_t{-1}, int64_t{1} << 51, -(int64_t{1} << 51)}) {
    EXPECT_EQ(IntegerOfDouble(static_cast<double>(integer)), integer);
  }
}

// The bound (1) of the header, up to the greatest operand.
TEST(FmaArithmetic, LazyProductIsExactAndWithinItsBound) {
  std::mt19937_64 random(1);
  for (uint64_t q : kModuli) {
    const A::Modulus m = ModulusOf(q);
    for (uint64_t w : Constants(q, random)) {
      const A::Factor factor = A::MakeFactor(w, 0, m);
      for (double x : Corners(q, 0x1p52 / static_cast<double>(q) > 64 ? 64 : 16, random)) {
        const double product = A::MultiplyLazy(x, factor, m);
        ASSERT_EQ(ResidueOf(product, q), Residue(ToMpz(x) * testing::ToMpz(w), q)) << x << " " << w;
        const double bound = (0.5 + std::abs(x) * 0x1p-53) * m.q + 1;
        ASSERT_LE(std::abs(product), bound) << x << " " << w << " mod " << q;
      }
    }
  }
}

TEST(FmaArithmetic, ForwardLevelsStayInRangeBetweenReductions) {
  std::mt19937_64 random(2);
  for (uint64_t q : kModuli) {
    const A::Modulus m = ModulusOf(q);
    // Below 2^48, all the levels of the greatest ring.
    const int levels = m.is_wide ? 4 : 17;
    for (uint64_t w : {uint64_t{1}, q / 3, q / 2, q / 2 + 1, q - 1}) {
      const A::Factor factor = A::MakeFactor(w, 0, m);
      for (double start : {0.0, 1.0, m.q - 1, -m.q, m.q, std::floor(m.q / 2)}) {
        // The residue of greatest magnitude meets itself at every level.
        double x = start;
        mpz_class exact = ToMpz(start);
        for (int level = 0; level < levels; ++level) {
          double sum = x;
          double difference = x;
          ASSERT_LE(std::abs(x), 0x1p52);
          A::ForwardButterfly(sum, difference, factor, m);
          const mpz_class exact_sum = exact + testing::ToMpz(w) * exact;
          const mpz_class exact_difference = exact - testing::ToMpz(w) * exact;
          ASSERT_EQ(ResidueOf(sum, q), Residue(exact_sum, q));
          ASSERT_EQ(ResidueOf(difference, q), Residue(exact_difference, q));
          ASSERT_EQ(A::ToWord(A::FinishForward(sum, m)), Residue(exact_sum, q));
          ASSERT_EQ(A::ToWord(A::FinishForward(difference, m)), Residue(exact_difference, q));
          const bool takes_sum = std::abs(sum) >= std::abs(difference);
          x = takes_sum ? sum : difference;
          exact = takes_sum ? exact_sum : exact_difference;
        }
        const double settled = A::NeedsSettling(m) ? A::Settle(x, m) : x;
        ASSERT_EQ(ResidueOf(settled, q), Residue(exact, q));
        if (m.is_wide) ASSERT_LE(std::abs(settled), m.q);
      }
    }
  }
}

TEST(FmaArithmetic, InverseLevelsStayInRangeBetweenReductions) {
  std::mt19937_64 random(3);
  for (uint64_t q : kModuli) {
    const A::Modulus m = ModulusOf(q);
    const int levels = m.is_wide ? 2 : 4;
    const double factor = std::ldexp(1.0, levels - 1);
    for (uint64_t w : Constants(q, random)) {
      const A::Factor root = A::MakeFactor(w, 0, m);
      const uint64_t v = q / 5;
      // What the last of so many levels meets, from residues up to q.
      for (double x : Corners(q, factor, random)) {
        for (double y : {x, -x, factor * m.q, -factor * m.q, 0.0}) {
          double sum = x;
          double product = y;
          A::InverseButterfly(sum, product, root, m);
          ASSERT_EQ(ResidueOf(sum, q), Residue(ToMpz(x) + ToMpz(y), q));
          ASSERT_EQ(ResidueOf(product, q), Residue((ToMpz(x) - ToMpz(y)) * testing::ToMpz(w), q));
          ASSERT_LE(std::abs(product), m.q + 1);
          ASSERT_LE(std::abs(A::SettleInverseNode(sum, m)), m.q / 2 + 1);

          sum = x;
          product = y;
          A::LastInverseButterfly(sum, product, A::MakeFactor(v, 0, m), root, m);
          ASSERT_EQ(A::ToWord(sum), Residue((ToMpz(x) + ToMpz(y)) * testing::ToMpz(v), q));
          ASSERT_EQ(A::ToWord(product), Residue((ToMpz(x) - ToMpz(y)) * testing::ToMpz(w), q));
        }
      }
    }
  }
}

TEST(FmaArithmetic, CanonicalOperationsGiveCanonicalWords) {
  std::mt19937_64 random(4);
  for (uint64_t q : kModuli) {
    const A::Modulus m = ModulusOf(q);
    EXPECT_EQ(A::ModulusWord(m), q);
    for (uint64_t a : Constants(q, random)) {
      const double x = A::FromWord(a);
      EXPECT_EQ(A::ToWord(A::Negate(x, m)), Residue(-testing::ToMpz(a), q));
      for (uint64_t b : Constants(q, random)) {
        const double y = A::FromWord(b);
        const mpz_class p = testing::ToMpz(a);
        const mpz_class r = testing::ToMpz(b);
        ASSERT_EQ(A::ToWord(A::Add(x, y, m)), Residue(p + r, q));
        ASSERT_EQ(A::ToWord(A::Subtract(x, y, m)), Residue(p - r, q));
        ASSERT_EQ(A::ToWord(A::Multiply(x, y, m)), Residue(p * r, q)) << a << " " << b;
        ASSERT_EQ(A::ToWord(A::MultiplyFactor(x, A::MakeFactor(b, 0, m), m)), Residue(p * r, q));
        ASSERT_EQ(A::ToWord(A::SubtractMultiplyFactor(x, y, A::MakeFactor(q / 3, 0, m), m)),
                  Residue((p - r) * testing::ToMpz(q / 3), q));
      }
    }
  }
}

// As many products as a sum takes, of the greatest operands, of mixed moduli, and at random.
TEST(FmaArithmetic, SumsReduceExactlyUpToTheMostTerms) {
  std::mt19937_64 random(5);
  const uint64_t greatest = (uint64_t{1} << 50) - 1;
  for (uint64_t q : kModuli) {
    const A::Modulus m = ModulusOf(q);
    for (int terms : {1, 2, 3, 8, 24, kMaxProductTerms}) {
      for (int fill = 0; fill < 12; ++fill) {
        A::ProductSum of_words;
        A::ProductSum of_residues;
        mpz_class exact = 0;
        for (int i = 0; i < terms; ++i) {
          const uint64_t a = fill == 0 ? greatest : random() % (greatest + 1);
          const uint64_t b = fill <= 1 ? q - 1 : random() % q;
          A::AddWordsToSum(a, b, of_words);
          A::AddToSum(A::FromWord(a), A::FromWord(b), of_residues);
          exact += testing::ToMpz(a) * testing::ToMpz(b);
        }
        // One more, as a basis conversion adds it.
        A::AddWordsToSum(64, q, of_words);
        ASSERT_EQ(A::ToWord(A::ReduceSum(of_words, m)), Residue(exact + 64 * testing::ToMpz(q), q));
        ASSERT_EQ(A::ToWord(A::ReduceSum(of_residues, m)), Residue(exact, q));
      }
    }
  }
}

TEST(FmaArithmetic, SumsTakeNegativeResidues) {
  std::mt19937_64 random(6);
  for (uint64_t q : kModuli) {
    const A::Modulus m = ModulusOf(q);
    A::ProductSum sum;
    mpz_class exact = 0;
    for (int i = 0; i < kMaxProductTerms; ++i) {
      const double a = -std::floor(m.q / 2) + static_cast<double>(random() % 2);
      A::AddToSum(a, m.q - 1, sum);
      exact += ToMpz(a) * ToMpz(m.q - 1);
    }
    EXPECT_EQ(A::ToWord(A::ReduceSum(sum, m)), Residue(exact, q));
  }
}

TEST(FmaArithmetic, SignedWordsReduceAtTheEndsOfTheirRange) {
  for (uint64_t q : kModuli) {
    const A::Modulus m = ModulusOf(q);
    const auto signed_q = static_cast<int64_t>(q);
    for (int64_t v : {INT64_MIN, INT64_MIN + 1, -signed_q - 1, -signed_q, 1 - signed_q, int64_t{-1},
                      int64_t{0}, int64_t{1}, signed_q - 1, signed_q, INT64_MAX}) {
      const mpz_class value = v < 0 ? -testing::ToMpz(uint64_t{0} - static_cast<uint64_t>(v))
                                    : testing::ToMpz(static_cast<uint64_t>(v));
      EXPECT_EQ(A::ToWord(A::FromSigned(v, m)), Residue(value, q)) << v << " mod " << q;
    }
  }
}

}  // namespace
}  // namespace cipherd::math
