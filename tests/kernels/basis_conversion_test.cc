#include "core/ring/basis_conversion.h"

#include <cstdint>
#include <vector>

#include "tests/kernels/kernel_fixture.h"
#include "tests/math/mpz.h"

namespace cipherd::kernels {
namespace {

using ::cipherd::testing::Polys;
using ::cipherd::testing::Residue;
using ::cipherd::testing::SamePolys;
using ::cipherd::testing::ToMpz;

using Rows = std::vector<uint16_t>;

class BasisConversionTest : public testing::KernelFixture {
 protected:
  // Values whose representatives in [-Q/2, Q/2) are spread over the whole range: 0, ±1, and up to
  // 2^-40 · Q from the ends, where the rounding is still exact.
  std::vector<mpz_class> Values(const mpz_class& q, int64_t count) {
    gmp_randclass random(gmp_randinit_mt);
    random.seed(static_cast<unsigned long>(random_()));
    const mpz_class margin = (q >> 40) + 1;
    std::vector<mpz_class> values = {0, 1, -1, q / 2 - margin, -(q / 2) + margin, q / 4, -q / 3};
    while (static_cast<int64_t>(values.size()) < count) {
      mpz_class value = random.get_z_range(q);
      if (value > q / 2) value -= q;
      if (abs(abs(value) - q / 2) > margin) values.push_back(value);
    }
    values.resize(count);
    return values;
  }

  void Check(int log_n, const std::vector<int>& bits, const Rows& source, const Rows& target,
             int64_t batch, int64_t gap_words) {
    ASSERT_NO_FATAL_FAILURE(UseRing(log_n, bits));
    ASSERT_OK_AND_ASSIGN(const ring::BasisConversion conversion,
                         ring::BasisConversion::Create(*basis_, source, target));
    ASSERT_OK_AND_ASSIGN(const runtime::StoragePtr tables, Place(conversion.image()));
    mpz_class q = 1;
    for (uint16_t row : source) q *= ToMpz(basis_->prime(row));

    Polys in(log_n, static_cast<int>(source.size()), batch, gap_words);
    Polys out(log_n, static_cast<int>(target.size()), batch, gap_words);
    Polys expected = out;
    for (int64_t o = 0; o < batch; ++o) {
      const std::vector<mpz_class> values = Values(q, in.n());
      for (int64_t i = 0; i < in.n(); ++i) {
        for (int l = 0; l < in.limb_count; ++l) {
          in.at(o, l, i) = Residue(values[i], basis_->prime(source[l]));
        }
        for (int l = 0; l < out.limb_count; ++l) {
          expected.at(o, l, i) = Residue(values[i], basis_->prime(target[l]));
        }
      }
    }
    ASSERT_OK(Run({&in}, out, [&](const std::vector<PolyView>& views, PolyView view) {
      return kernels().convert_basis(ring_, conversion.TablesAt(tables->data()), views[0], view,
                                     *stream_);
    }));
    ASSERT_TRUE(SamePolys(out, expected));
  }
};

TEST_P(BasisConversionTest, GivesTheCentredRepresentative) {
  const std::vector<int> bits = {50, 40, 40, 61, 61, 60, 30, 30, 61, 61};
  for (int log_n : {4, 10}) {
    // One prime up and down; digits of several sizes, up and down; all but one; a prime on both
    // sides.
    Check(log_n, bits, {0}, {3}, 1, 0);
    Check(log_n, bits, {3}, {6, 0, 1}, 3, 5);
    Check(log_n, bits, {6, 7}, {0, 1, 2, 3, 4, 5, 8}, 2, 0);
    Check(log_n, bits, {3, 4, 8}, {6, 0, 1, 2}, 1, 16);
    Check(log_n, bits, {8, 0, 1, 2, 3, 4, 5, 6, 7}, {9}, 2, 3);
    Check(log_n, bits, {9}, {0, 1, 2, 3, 4, 5, 6, 7, 8}, 1, 0);
    Check(log_n, bits, {0, 3}, {3, 1}, 1, 0);
  }
  Check(13, {61, 61, 61, 60}, {0, 1, 2}, {3}, 1, 0);
}

// 64 primes of 61 bits: the sum of products is as great as it can be.
TEST_P(BasisConversionTest, HoldsSixtyFourSourcePrimes) {
  const std::vector<int> bits(65, 61);
  Rows source(64);
  for (uint16_t i = 0; i < 64; ++i) source[i] = i;
  Check(5, bits, source, {64}, 1, 0);
}

CIPHERD_INSTANTIATE_KERNEL_SUITE(BasisConversionTest);

}  // namespace
}  // namespace cipherd::kernels
