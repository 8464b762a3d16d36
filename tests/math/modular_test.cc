// Arithmetic against GMP, with operands at every edge of its ranges and random ones between.
#include "core/math/modular.h"

#include <cstdint>
#include <random>
#include <vector>

#include "core/math/barrett.h"
#include "core/math/bit_reverse.h"
#include "core/math/mulhi.h"
#include "core/math/power.h"
#include "core/math/product_modulus.h"
#include "core/math/product_sum.h"
#include "core/math/shoup.h"
#include "gtest/gtest.h"
#include "tests/math/mpz.h"

namespace cipherd::math {
namespace {

using testing::Residue;
using testing::ToMpz;
using testing::ToWord;

// Odd moduli, prime or not, up to the greatest below 2^61.
const std::vector<uint64_t> kModuli = {3,
                                       17,
                                       1073692673,
                                       (uint64_t{1} << 32) + 15,
                                       1125899906826241,
                                       1152921504606830593,
                                       2305843009213317121,
                                       (uint64_t{1} << 61) - 1};

std::vector<uint64_t> EdgesAndSamples(uint64_t bound, std::mt19937_64& random) {
  std::vector<uint64_t> values = {0, 1, bound / 2, bound / 2 + 1, bound - 1};
  for (int i = 0; i < 40; ++i) values.push_back(random() % bound);
  return values;
}

std::vector<uint64_t> Words(std::mt19937_64& random) {
  std::vector<uint64_t> values = {0, 1, UINT64_MAX, UINT64_MAX - 1, uint64_t{1} << 63};
  for (int i = 0; i < 40; ++i) values.push_back(random() >> (random() % 64));
  return values;
}

TEST(MulHi, WideProductsAreExact) {
  std::mt19937_64 random(1);
  for (uint64_t a : Words(random)) {
    for (uint64_t b : Words(random)) {
      EXPECT_EQ(ToMpz(MultiplyWide(a, b)), ToMpz(a) * ToMpz(b));
      EXPECT_EQ(ToMpz(MultiplyHigh(a, b)), (ToMpz(a) * ToMpz(b)) >> 64);
    }
  }
}

TEST(Modular, SumsAreCanonical) {
  std::mt19937_64 random(2);
  for (uint64_t q : kModuli) {
    for (uint64_t a : EdgesAndSamples(q, random)) {
      EXPECT_EQ(NegateMod(a, q), Residue(-ToMpz(a), q));
      for (uint64_t b : EdgesAndSamples(q, random)) {
        EXPECT_EQ(AddMod(a, b, q), Residue(ToMpz(a) + ToMpz(b), q));
        EXPECT_EQ(SubMod(a, b, q), Residue(ToMpz(a) - ToMpz(b), q));
      }
    }
  }
}

TEST(Barrett, ReducesEveryOneHundredTwentyEightBitValue) {
  std::mt19937_64 random(3);
  for (uint64_t q : kModuli) {
    const Barrett m = MakeBarrett(q);
    for (uint64_t high : Words(random)) {
      for (uint64_t low : Words(random)) {
        const uint128_t x = (static_cast<uint128_t>(high) << 64) | low;
        ASSERT_EQ(Reduce128(x, m), Residue(ToMpz(x), q)) << q;
      }
    }
  }
}

// The quotient estimate is worst just below and at multiples of the modulus.
TEST(Barrett, ReducesNeighboursOfMultiples) {
  std::mt19937_64 random(4);
  for (uint64_t q : kModuli) {
    const Barrett m = MakeBarrett(q);
    for (int i = 0; i < 200; ++i) {
      const uint128_t any = (static_cast<uint128_t>(random()) << 64 | random()) >> (random() % 128);
      const uint128_t multiple = any - any % q;
      EXPECT_EQ(Reduce128(multiple, m), 0u);
      if (multiple != 0) {
        EXPECT_EQ(Reduce128(multiple - 1, m), q - 1);
      }
      const uint64_t word = random();
      const uint64_t word_multiple = word - word % q;
      EXPECT_EQ(Reduce64(word_multiple, m), 0u);
      if (word_multiple != 0) {
        EXPECT_EQ(Reduce64(word_multiple - 1, m), q - 1);
      }
    }
    const uint128_t greatest = ~uint128_t{0};
    EXPECT_EQ(Reduce128(greatest - greatest % q, m), 0u);
    EXPECT_EQ(Reduce64(UINT64_MAX, m), UINT64_MAX % q);
  }
}

TEST(ProductModulus, ReducesEverythingBelowFourSquares) {
  std::mt19937_64 random(8);
  for (uint64_t q : kModuli) {
    const ProductModulus m = MakeProductModulus(MakeBarrett(q));
    const uint128_t bound = MultiplyWide(2 * q, 2 * q);
    std::vector<uint128_t> values = {0, 1, q - 1, q, bound - 1, bound - q, bound / 2, bound / 4};
    for (int i = 0; i < 500; ++i) {
      const uint128_t any = (static_cast<uint128_t>(random()) << 64 | random()) % bound;
      const uint128_t multiple = any - any % q;
      values.insert(values.end(), {any, multiple, multiple + q - 1});
    }
    for (uint128_t x : values) {
      if (x < bound) {
        ASSERT_EQ(ReduceProduct(x, m), Residue(ToMpz(x), q)) << q;
      }
    }
    for (uint64_t a : EdgesAndSamples(2 * q, random)) {
      for (uint64_t b : EdgesAndSamples(2 * q, random)) {
        ASSERT_EQ(MulModProduct(a, b, m), Residue(ToMpz(a) * ToMpz(b), q)) << q;
      }
    }
  }
}

TEST(MulHi, BitLengthCountsBits) {
  for (int bits = 1; bits <= 64; ++bits) {
    EXPECT_EQ(BitLength(uint64_t{1} << (bits - 1)), bits);
    EXPECT_EQ(BitLength(~uint64_t{0} >> (64 - bits)), bits);
  }
}

TEST(Shoup, QuotientIsExact) {
  std::mt19937_64 random(5);
  for (uint64_t q : kModuli) {
    const Barrett m = MakeBarrett(q);
    for (uint64_t w : EdgesAndSamples(q, random)) {
      EXPECT_EQ(ToMpz(ShoupQuotient(w, m)), (ToMpz(w) << 64) / ToMpz(q));
    }
  }
}

TEST(Shoup, ProductsStayInTheirRangesForAnyWord) {
  std::mt19937_64 random(6);
  for (uint64_t q : kModuli) {
    const Barrett m = MakeBarrett(q);
    for (uint64_t w : EdgesAndSamples(q, random)) {
      const uint64_t w_shoup = ShoupQuotient(w, m);
      for (uint64_t a : Words(random)) {
        const uint64_t expected = Residue(ToMpz(a) * ToMpz(w), q);
        const uint64_t lazy = MulShoupLazy(a, w, w_shoup, q);
        EXPECT_LT(lazy, 2 * q);
        EXPECT_EQ(lazy % q, expected);
        EXPECT_EQ(MulShoup(a, w, w_shoup, q), expected);
      }
    }
  }
}

TEST(ProductSum, HoldsItsMaximalTermsOfMaximalProducts) {
  const uint64_t greatest = (uint64_t{1} << 61) - 1;
  uint128_t sum = 0;
  mpz_class expected = 0;
  for (int i = 0; i < kMaxProductTerms; ++i) {
    AddProduct(greatest, greatest, sum);
    expected += ToMpz(greatest) * ToMpz(greatest);
  }
  AddProduct(64, greatest, sum);
  expected += 64 * ToMpz(greatest);
  EXPECT_EQ(ToMpz(sum), expected);
}

TEST(Power, PowersAndInversesAgreeWithGmp) {
  std::mt19937_64 random(7);
  for (uint64_t q : {uint64_t{17}, uint64_t{1073692673}, uint64_t{2305843009213317121}}) {
    const Barrett m = MakeBarrett(q);
    EXPECT_EQ(PowMod(0, 0, m), 1u);
    for (uint64_t a : EdgesAndSamples(q, random)) {
      const uint64_t exponent = random();
      mpz_class power;
      mpz_powm(power.get_mpz_t(), ToMpz(a).get_mpz_t(), ToMpz(exponent).get_mpz_t(),
               ToMpz(q).get_mpz_t());
      EXPECT_EQ(PowMod(a, exponent, m), ToWord(power));
      if (a != 0) {
        EXPECT_EQ(MulMod(a, InverseMod(a, m), m), 1u);
      }
    }
  }
}

TEST(BitReverse, ReversesAndInverts) {
  EXPECT_EQ(BitReverse(0b0011, 4), 0b1100u);
  EXPECT_EQ(BitReverse(1, 17), uint32_t{1} << 16);
  EXPECT_EQ(BitReverse(0x80000001u, 32), 0x80000001u);
  for (uint32_t i = 0; i < 1 << 10; ++i) EXPECT_EQ(BitReverse(BitReverse(i, 10), 10), i);
}

}  // namespace
}  // namespace cipherd::math
