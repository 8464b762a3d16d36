// The policy's lazy ranges: each function's result, at the corners of what it may be given.
#include "core/math/integer_arithmetic.h"

#include <cstdint>
#include <vector>

#include "core/math/barrett.h"
#include "gtest/gtest.h"
#include "tests/math/mpz.h"

namespace cipherd::math {
namespace {

using A = IntegerArithmetic;
using testing::Residue;
using testing::ToMpz;

const std::vector<uint64_t> kPrimes = {97, 1073692673, 1125899906826241, 2305843009213317121};

// Multiples of q and their neighbours in [0, factor · q).
std::vector<uint64_t> Corners(uint64_t q, int factor) {
  std::vector<uint64_t> corners;
  for (int k = 0; k < factor; ++k) {
    for (uint64_t offset : {uint64_t{0}, uint64_t{1}, q / 2, q - 1}) {
      corners.push_back(k * q + offset);
    }
  }
  return corners;
}

A::Factor FactorOf(uint64_t w, const A::Modulus& m) {
  return A::MakeFactor(w, ShoupQuotient(w, m), m);
}

TEST(IntegerArithmetic, ForwardButterflyStaysBelowFourQ) {
  for (uint64_t q : kPrimes) {
    const A::Modulus m = MakeProductModulus(MakeBarrett(q));
    for (uint64_t w : {uint64_t{1}, q / 3, q - 1}) {
      for (uint64_t x : Corners(q, 4)) {
        for (uint64_t y : Corners(q, 4)) {
          uint64_t sum = x;
          uint64_t difference = y;
          A::ForwardButterfly(sum, difference, FactorOf(w, m), m);
          ASSERT_LT(ToMpz(sum), 4 * ToMpz(q));
          ASSERT_LT(ToMpz(difference), 4 * ToMpz(q));
          ASSERT_EQ(A::FinishForward(sum, m), Residue(ToMpz(x) + ToMpz(w) * ToMpz(y), q));
          ASSERT_EQ(A::FinishForward(difference, m), Residue(ToMpz(x) - ToMpz(w) * ToMpz(y), q));
        }
      }
    }
  }
}

TEST(IntegerArithmetic, InverseButterfliesStayBelowTwoQ) {
  for (uint64_t q : kPrimes) {
    const A::Modulus m = MakeProductModulus(MakeBarrett(q));
    for (uint64_t w : {uint64_t{1}, q / 3, q - 1}) {
      const uint64_t v = q / 5;
      for (uint64_t x : Corners(q, 2)) {
        for (uint64_t y : Corners(q, 2)) {
          uint64_t sum = x;
          uint64_t difference = y;
          A::InverseButterfly(sum, difference, FactorOf(w, m), m);
          ASSERT_LT(sum, 2 * q);
          ASSERT_LT(difference, 2 * q);
          ASSERT_EQ(sum % q, Residue(ToMpz(x) + ToMpz(y), q));
          ASSERT_EQ(difference % q, Residue((ToMpz(x) - ToMpz(y)) * ToMpz(w), q));

          sum = x;
          difference = y;
          A::LastInverseButterfly(sum, difference, FactorOf(v, m), FactorOf(w, m), m);
          ASSERT_EQ(sum, Residue((ToMpz(x) + ToMpz(y)) * ToMpz(v), q));
          ASSERT_EQ(difference, Residue((ToMpz(x) - ToMpz(y)) * ToMpz(w), q));
        }
      }
    }
  }
}

TEST(IntegerArithmetic, SignedWordsReduceAtTheEndsOfTheirRange) {
  for (uint64_t q : kPrimes) {
    const A::Modulus m = MakeProductModulus(MakeBarrett(q));
    const auto signed_q = static_cast<int64_t>(q);
    for (int64_t v : {INT64_MIN, INT64_MIN + 1, -signed_q - 1, -signed_q, 1 - signed_q, int64_t{-1},
                      int64_t{0}, int64_t{1}, signed_q - 1, signed_q, INT64_MAX}) {
      const mpz_class value =
          v < 0 ? -ToMpz(uint64_t{0} - static_cast<uint64_t>(v)) : ToMpz(static_cast<uint64_t>(v));
      EXPECT_EQ(A::FromSigned(v, m), Residue(value, q)) << v << " mod " << q;
    }
  }
}

TEST(IntegerArithmetic, DifferencesAndProductsAreCanonical) {
  for (uint64_t q : kPrimes) {
    const A::Modulus m = MakeProductModulus(MakeBarrett(q));
    for (uint64_t a : Corners(q, 1)) {
      for (uint64_t b : Corners(q, 1)) {
        EXPECT_EQ(A::Multiply(a, b, m), Residue(ToMpz(a) * ToMpz(b), q));
        EXPECT_EQ(A::SubtractMultiplyFactor(a, b, FactorOf(q / 3, m), m),
                  Residue((ToMpz(a) - ToMpz(b)) * ToMpz(q / 3), q));
      }
    }
  }
}

}  // namespace
}  // namespace cipherd::math
