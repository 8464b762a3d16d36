#include "core/ring/basis_conversion.h"

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "core/base/status_macros.h"
#include "core/ring/primes.h"
#include "core/ring/rns_basis.h"
#include "gtest/gtest.h"
#include "tests/math/mpz.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::ring {
namespace {

using ::cipherd::testing::Residue;
using ::cipherd::testing::StatusIs;
using ::cipherd::testing::ToMpz;
using ::testing::HasSubstr;

absl::StatusOr<RnsBasis> MakeBasis() {
  const std::vector<int> bits = {30, 50, 61, 60, 40};
  CIPHERD_ASSIGN_OR_RETURN(const std::vector<uint64_t> primes, GeneratePrimes(4, bits));
  return RnsBasis::Create(4, primes);
}

void ExpectTables(const BasisConversionTables& tables, const RnsBasis& basis,
                  const std::vector<uint16_t>& source, const std::vector<uint16_t>& target) {
  ASSERT_EQ(tables.source_count, static_cast<int>(source.size()));
  ASSERT_EQ(tables.target_count, static_cast<int>(target.size()));
  mpz_class product = 1;
  for (uint16_t row : source) product *= ToMpz(basis.prime(row));
  for (size_t i = 0; i < source.size(); ++i) {
    const uint64_t q = basis.prime(source[i]);
    EXPECT_EQ(tables.source_primes[i], source[i]);
    EXPECT_EQ(Residue(ToMpz(tables.hat_inverse[i]) * (product / ToMpz(q)), q), 1 % q);
    EXPECT_EQ(ToMpz(tables.hat_inverse_shoup[i]), (ToMpz(tables.hat_inverse[i]) << 64) / ToMpz(q));
    EXPECT_EQ(tables.source_inverse[i], 1.0 / static_cast<double>(q));
  }
  for (size_t j = 0; j < target.size(); ++j) {
    const uint64_t p = basis.prime(target[j]);
    EXPECT_EQ(tables.target_primes[j], target[j]);
    EXPECT_EQ(tables.source_product[j], Residue(product, p));
    for (size_t i = 0; i < source.size(); ++i) {
      EXPECT_EQ(tables.hat[j * source.size() + i],
                Residue(product / ToMpz(basis.prime(source[i])), p));
    }
  }
}

TEST(BasisConversion, TablesHoldWhatTheirCommentsSay) {
  ASSERT_OK_AND_ASSIGN(const RnsBasis basis, MakeBasis());
  using Rows = std::vector<uint16_t>;
  for (const auto& [source, target] :
       {std::pair(Rows{0}, Rows{1}), std::pair(Rows{4, 1, 2}, Rows{3, 0}),
        std::pair(Rows{2}, Rows{0, 1, 3, 4}), std::pair(Rows{0, 1, 2, 3}, Rows{4}),
        std::pair(Rows{0, 1}, Rows{1, 2})}) {
    ASSERT_OK_AND_ASSIGN(const BasisConversion conversion,
                         BasisConversion::Create(basis, source, target));
    ExpectTables(conversion.tables(), basis, source, target);
  }
}

TEST(BasisConversion, ImagesStandBackToBackInOneBlock) {
  ASSERT_OK_AND_ASSIGN(const RnsBasis basis, MakeBasis());
  const std::vector<uint16_t> low = {0, 1};
  const std::vector<uint16_t> high = {2, 3, 4};
  ASSERT_OK_AND_ASSIGN(const BasisConversion up, BasisConversion::Create(basis, low, high));
  ASSERT_OK_AND_ASSIGN(const BasisConversion down, BasisConversion::Create(basis, high, low));
  const size_t offset = up.image().bytes();
  std::vector<uint64_t> block((offset + down.image().bytes()) / 8);
  up.image().WriteAt(block.data(), block.data());
  down.image().WriteAt(block.data() + offset / 8, block.data() + offset / 8);
  ExpectTables(up.TablesAt(block.data()), basis, low, high);
  ExpectTables(down.TablesAt(block.data() + offset / 8), basis, high, low);
}

TEST(BasisConversion, RefusesUnfitRowsByName) {
  ASSERT_OK_AND_ASSIGN(const RnsBasis basis, MakeBasis());
  using Rows = std::vector<uint16_t>;
  EXPECT_THAT(BasisConversion::Create(basis, Rows{}, Rows{1}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("source: expected 1 to 64")));
  EXPECT_THAT(BasisConversion::Create(basis, Rows{0}, Rows{}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("target: expected 1 to 64")));
  EXPECT_THAT(BasisConversion::Create(basis, Rows{0}, Rows{1, 5}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("target[1]: expected a row")));
  EXPECT_THAT(BasisConversion::Create(basis, Rows{0, 1, 0}, Rows{2}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("source[2]: row 0 comes")));
}

}  // namespace
}  // namespace cipherd::ring
