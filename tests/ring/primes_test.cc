#include "core/ring/primes.h"

#include <gmpxx.h>

#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "core/math/barrett.h"
#include "core/math/power.h"
#include "gtest/gtest.h"
#include "tests/math/mpz.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::ring {
namespace {

using ::cipherd::testing::StatusIs;
using ::cipherd::testing::ToMpz;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(IsPrime, AgreesWithGmp) {
  std::mt19937_64 random(1);
  for (uint64_t n = 0; n < 2000; ++n) {
    EXPECT_EQ(IsPrime(n), mpz_probab_prime_p(ToMpz(n).get_mpz_t(), 30) != 0) << n;
  }
  for (int i = 0; i < 2000; ++i) {
    const uint64_t n = (random() >> (random() % 60)) | 1;
    EXPECT_EQ(IsPrime(n), mpz_probab_prime_p(ToMpz(n).get_mpz_t(), 30) != 0) << n;
  }
}

TEST(IsPrime, RefusesCarmichaelNumbersAndStrongPseudoprimes) {
  // The last three are strong pseudoprimes to the first 4, 9 and 11 prime bases.
  for (uint64_t n : {uint64_t{561}, uint64_t{1105}, uint64_t{294409}, uint64_t{3215031751},
                     uint64_t{3825123056546413051}, uint64_t{18446744073709551615u}}) {
    EXPECT_FALSE(IsPrime(n)) << n;
  }
  EXPECT_TRUE(IsPrime(18446744073709551557u));
}

// These values are part of the format: contexts built by name or by bit sizes name the same primes
// for ever.
TEST(GeneratePrimes, GoldenPrimesAndRoots) {
  const std::vector<int> bits = {50, 40, 40, 61, 30};
  ASSERT_OK_AND_ASSIGN(const std::vector<uint64_t> primes13, GeneratePrimes(13, bits));
  EXPECT_THAT(primes13, ElementsAre(1125899906826241, 1099511480321, 1099510890497,
                                    2305843009213317121, 1073692673));
  std::vector<uint64_t> roots;
  for (uint64_t q : primes13) roots.push_back(SmallestPrimitiveRoot(q, 13));
  EXPECT_THAT(roots, ElementsAre(11286399139, 30370987, 5405730, 437651905986530, 52921));

  ASSERT_OK_AND_ASSIGN(const std::vector<uint64_t> primes14, GeneratePrimes(14, bits));
  EXPECT_THAT(primes14, ElementsAre(1125899904679937, 1099510054913, 1099508121601,
                                    2305843009211662337, 1073643521));
  roots.clear();
  for (uint64_t q : primes14) roots.push_back(SmallestPrimitiveRoot(q, 14));
  EXPECT_THAT(roots, ElementsAre(184459094098, 42618759, 13296178, 70072284713359, 238846));

  ASSERT_OK_AND_ASSIGN(const std::vector<uint64_t> around,
                       GeneratePrimes(14, bits, PrimePlacement::kAround));
  EXPECT_THAT(around, ElementsAre(1125899908022273, 1099511922689, 1099512938497,
                                  2305843009211662337, 1073643521));
}

TEST(GeneratePrimes, BelowTakesTheGreatestOnesOfTheirSize) {
  const int log_n = 10;
  const std::vector<int> bits(8, 30);
  ASSERT_OK_AND_ASSIGN(const std::vector<uint64_t> primes, GeneratePrimes(log_n, bits));
  std::vector<uint64_t> expected;
  for (uint64_t q = (uint64_t{1} << 30) - 1; expected.size() < bits.size(); --q) {
    if (q % (2 << log_n) == 1 && mpz_probab_prime_p(ToMpz(q).get_mpz_t(), 30) != 0) {
      expected.push_back(q);
    }
  }
  EXPECT_EQ(primes, expected);
}

TEST(GeneratePrimes, AroundTakesTheNearestOnes) {
  const int log_n = 10;
  const std::vector<int> bits(8, 30);
  ASSERT_OK_AND_ASSIGN(const std::vector<uint64_t> primes,
                       GeneratePrimes(log_n, bits, PrimePlacement::kAround));
  const int64_t center = int64_t{1} << 30;
  std::vector<uint64_t> expected;
  for (int64_t distance = 0; expected.size() < bits.size(); ++distance) {
    for (int64_t q : {center - distance, center + distance}) {
      if (q % (2 << log_n) == 1 &&
          mpz_probab_prime_p(ToMpz(static_cast<uint64_t>(q)).get_mpz_t(), 30) != 0) {
        expected.push_back(q);
      }
    }
  }
  EXPECT_EQ(primes, expected);
}

TEST(GeneratePrimes, MixedSizesAreDistinctAndValidForEveryDegree) {
  const std::vector<int> bits = {60, 61, 60, 61, 50, 30, 30, 50};
  for (int log_n = kMinLogN; log_n <= kMaxLogN; ++log_n) {
    for (PrimePlacement placement : {PrimePlacement::kBelow, PrimePlacement::kAround}) {
      ASSERT_OK_AND_ASSIGN(const std::vector<uint64_t> primes,
                           GeneratePrimes(log_n, bits, placement));
      EXPECT_EQ(std::set(primes.begin(), primes.end()).size(), bits.size());
      for (uint64_t q : primes) EXPECT_OK(ValidatePrime(q, log_n));
    }
  }
}

TEST(GeneratePrimes, NamesTheEntryThatCannotBeHad) {
  EXPECT_THAT(GeneratePrimes(3, std::vector<int>{30}),
              StatusIs(absl::StatusCode::kInvalidArgument, "log_n: expected 4 to 17, got 3"));
  EXPECT_THAT(GeneratePrimes(14, std::vector<int>{40, 62}),
              StatusIs(absl::StatusCode::kInvalidArgument, "bits[1]: expected 16 to 61, got 62"));
  EXPECT_THAT(GeneratePrimes(14, std::vector<int>{15}),
              StatusIs(absl::StatusCode::kInvalidArgument, "bits[0]: expected 16 to 61, got 15"));
  // 65537 is the only one in (2^16, 2^17) that is 1 mod 2^15.
  EXPECT_THAT(GeneratePrimes(14, std::vector<int>{17}), testing::IsOk());
  EXPECT_THAT(GeneratePrimes(14, std::vector<int>{17, 17}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("bits[1]: no prime of 17")));
}

TEST(ValidatePrime, SaysWhatIsWrong) {
  EXPECT_OK(ValidatePrime(1099511480321, 13));
  EXPECT_THAT(ValidatePrime(uint64_t{1} << 61, 13),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("below 2^61")));
  EXPECT_THAT(ValidatePrime((uint64_t{1} << 40) + 15, 13),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1 mod 2^14")));
  EXPECT_THAT(ValidatePrime((uint64_t{1} << 40) + 1, 13),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected a prime, got")));
  EXPECT_THAT(ValidatePrime(0, 13), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ValidatePrime(1, 13), StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST(SmallestPrimitiveRoot, IsPrimitiveAndNoSmallerOneExists) {
  // Small enough to try every candidate.
  for (uint64_t q : {uint64_t{97}, uint64_t{193}, uint64_t{12289}}) {
    const math::Barrett m = math::MakeBarrett(q);
    const int log_n = 4;
    uint64_t expected = 1;
    while (math::PowMod(expected, 16, m) != q - 1) ++expected;
    EXPECT_EQ(SmallestPrimitiveRoot(q, log_n), expected);
  }
}

}  // namespace
}  // namespace cipherd::ring
