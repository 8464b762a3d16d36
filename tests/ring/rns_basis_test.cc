#include "core/ring/rns_basis.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status_macros.h"
#include "core/math/bit_reverse.h"
#include "core/ring/primes.h"
#include "gtest/gtest.h"
#include "tests/math/mpz.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::ring {
namespace {

using ::cipherd::testing::Residue;
using ::cipherd::testing::StatusIs;
using ::cipherd::testing::ToMpz;
using ::testing::HasSubstr;

const std::vector<int> kBits = {30, 50, 60, 61};

absl::StatusOr<RnsBasis> MakeBasis(int log_n) {
  CIPHERD_ASSIGN_OR_RETURN(const std::vector<uint64_t> primes, GeneratePrimes(log_n, kBits));
  return RnsBasis::Create(log_n, primes);
}

uint64_t Power(uint64_t base, uint64_t exponent, uint64_t q) {
  mpz_class power;
  mpz_powm_ui(power.get_mpz_t(), ToMpz(base).get_mpz_t(), exponent, ToMpz(q).get_mpz_t());
  return testing::ToWord(power);
}

void ExpectShoupPair(uint64_t w, uint64_t shoup, uint64_t q) {
  EXPECT_EQ(ToMpz(shoup), (ToMpz(w) << 64) / ToMpz(q));
}

TEST(RnsBasis, TablesHoldWhatTheirCommentsSay) {
  for (int log_n : {4, 10}) {
    ASSERT_OK_AND_ASSIGN(const RnsBasis basis, MakeBasis(log_n));
    const RingTables tables = basis.tables();
    ASSERT_EQ(tables.log_n, log_n);
    ASSERT_EQ(tables.prime_count, 4);
    const uint64_t n = uint64_t{1} << log_n;
    for (int row = 0; row < tables.prime_count; ++row) {
      const PrimeConstants& prime = tables.primes[row];
      const uint64_t q = basis.prime(row);
      const uint64_t psi = basis.psi(row);
      ASSERT_EQ(prime.q, q);
      EXPECT_EQ((ToMpz(prime.barrett_high) << 64) + ToMpz(prime.barrett_low),
                (mpz_class(1) << 128) / ToMpz(q));
      EXPECT_EQ(Residue(ToMpz(prime.n_inverse) * ToMpz(n), q), 1u);
      ExpectShoupPair(prime.n_inverse, prime.n_inverse_shoup, q);
      EXPECT_EQ(prime.n_inverse_root,
                Residue(ToMpz(prime.n_inverse) * ToMpz(prime.psi_inverse_powers[1]), q));
      ExpectShoupPair(prime.n_inverse_root, prime.n_inverse_root_shoup, q);
      EXPECT_EQ(psi, SmallestPrimitiveRoot(q, log_n));
      for (uint32_t i = 0; i < n; ++i) {
        const uint64_t exponent = math::BitReverse(i, log_n);
        ASSERT_EQ(prime.psi_powers[i], Power(psi, exponent, q));
        ASSERT_EQ(prime.psi_inverse_powers[i], Power(psi, 2 * n - exponent, q));
        ExpectShoupPair(prime.psi_powers[i], prime.psi_powers_shoup[i], q);
        ExpectShoupPair(prime.psi_inverse_powers[i], prime.psi_inverse_powers_shoup[i], q);
      }
    }
  }
}

// A device's memory has other addresses than the staging block the image is written to.
TEST(RnsBasis, ImageWorksAtTheAddressItWasWrittenFor) {
  ASSERT_OK_AND_ASSIGN(const RnsBasis basis, MakeBasis(5));
  const size_t bytes = basis.image().bytes();
  ASSERT_EQ(bytes % kImageAlignment, 0u);
  std::vector<uint64_t> target(bytes / 8);
  std::vector<uint64_t> staging(bytes / 8);
  basis.image().WriteAt(target.data(), staging.data());
  std::memcpy(target.data(), staging.data(), bytes);
  std::memset(staging.data(), 0xff, bytes);

  const RingTables placed = basis.TablesAt(target.data());
  const RingTables host = basis.tables();
  ASSERT_EQ(placed.log_n, 5);
  ASSERT_EQ(placed.prime_count, 4);
  for (int row = 0; row < 4; ++row) {
    const PrimeConstants& a = placed.primes[row];
    const PrimeConstants& b = host.primes[row];
    EXPECT_EQ(a.q, b.q);
    EXPECT_EQ(a.n_inverse_root_shoup, b.n_inverse_root_shoup);
    for (const auto& [copy, original] :
         {std::pair(a.psi_powers, b.psi_powers), std::pair(a.psi_powers_shoup, b.psi_powers_shoup),
          std::pair(a.psi_inverse_powers, b.psi_inverse_powers),
          std::pair(a.psi_inverse_powers_shoup, b.psi_inverse_powers_shoup)}) {
      EXPECT_GE(copy, target.data());
      EXPECT_LE(copy + 32, target.data() + target.size());
      EXPECT_EQ(std::memcmp(copy, original, 32 * 8), 0);
    }
  }
}

TEST(RnsBasis, TablesSurviveAMove) {
  ASSERT_OK_AND_ASSIGN(RnsBasis basis, MakeBasis(4));
  const RingTables before = basis.tables();
  const RnsBasis moved = std::move(basis);
  EXPECT_EQ(moved.tables().primes, before.primes);
  EXPECT_EQ(moved.tables().primes[3].psi_powers[0], 1u);
}

TEST(RnsBasis, ProductModMatchesBigIntegers) {
  ASSERT_OK_AND_ASSIGN(const RnsBasis basis, MakeBasis(10));
  const std::vector<uint16_t> rows = {3, 0, 2};
  mpz_class product = 1;
  for (uint16_t row : rows) product *= ToMpz(basis.prime(row));
  for (int row = 0; row < basis.prime_count(); ++row) {
    EXPECT_EQ(basis.ProductMod(rows, row), Residue(product, basis.prime(row)));
    EXPECT_EQ(basis.ProductMod({}, row), 1u);
  }
}

TEST(RnsBasis, RefusesUnfitPrimesByName) {
  const auto message_of = [](int log_n, std::vector<uint64_t> primes) {
    return RnsBasis::Create(log_n, primes);
  };
  const uint64_t good = 1099511480321;  // 1 mod 2^14
  EXPECT_THAT(message_of(3, {good}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("log_n: expected 4 to 17")));
  EXPECT_THAT(message_of(18, {good}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("log_n: expected 4 to 17")));
  EXPECT_THAT(message_of(13, {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("primes: expected 1 to")));
  EXPECT_THAT(message_of(13, {good, good}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("primes[1]: ")));
  EXPECT_THAT(message_of(14, {good}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("primes[0]: expected a")));
  EXPECT_THAT(message_of(13, {(uint64_t{1} << 40) + 1}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected a prime, got")));
  EXPECT_THAT(message_of(13, {(uint64_t{1} << 61) + 1}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("below 2^61")));
}

}  // namespace
}  // namespace cipherd::ring
