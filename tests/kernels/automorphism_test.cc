#include <cstdint>
#include <vector>

#include "core/ring/galois.h"
#include "tests/kernels/kernel_fixture.h"
#include "tests/math/mpz.h"

namespace cipherd::kernels {
namespace {

using ::cipherd::testing::Fill;
using ::cipherd::testing::Polys;
using ::cipherd::testing::Residue;
using ::cipherd::testing::SamePolys;
using ::cipherd::testing::Shape;
using ::cipherd::testing::Shapes;
using ::cipherd::testing::ToMpz;

using Views = std::vector<PolyView>;

class AutomorphismTest : public testing::KernelFixture {
 protected:
  static std::vector<uint32_t> Elements(int log_n) {
    return {1, ring::RotationElement(1, 5, log_n), ring::RotationElement(-3, 5, log_n),
            ring::ConjugationElement(log_n), 3};
  }

  // Substitution of X^g for X, coefficient by coefficient.
  Polys Substituted(const Polys& a, uint32_t g) const {
    Polys result = a;
    for (int64_t o = 0; o < a.outer_count; ++o) {
      for (int l = 0; l < a.limb_count; ++l) {
        for (int64_t i = 0; i < a.n(); ++i) {
          const int64_t exponent = i * g % (2 * a.n());
          const mpz_class value = ToMpz(a.at(o, l, i));
          result.at(o, l, exponent % a.n()) =
              Residue(exponent < a.n() ? value : mpz_class(-value), basis_->prime(l));
        }
      }
    }
    return result;
  }
};

TEST_P(AutomorphismTest, CoefficientsAreSubstituted) {
  for (const Shape& shape : Shapes()) {
    SCOPED_TRACE(shape);
    ASSERT_NO_FATAL_FAILURE(UseRing(shape.log_n, shape.bits));
    for (uint32_t g : Elements(shape.log_n)) {
      for (Fill fill : {Fill::kRandom, Fill::kZeros, Fill::kGreatest}) {
        const Polys a = Filled(shape.batch, shape.gap_words, fill);
        Polys out(shape.log_n, limbs_.count, shape.batch, shape.gap_words);
        ASSERT_OK(Run({&a}, out, [&](const Views& in, PolyView view) {
          return kernels().automorphism_coefficient(ring_, limbs_, g, in[0], view, *stream_);
        }));
        ASSERT_TRUE(SamePolys(out, Substituted(a, g))) << g;
      }
    }
  }
}

TEST_P(AutomorphismTest, NttDomainAgreesWithCoefficientDomain) {
  for (const Shape& shape : Shapes()) {
    SCOPED_TRACE(shape);
    ASSERT_NO_FATAL_FAILURE(UseRing(shape.log_n, shape.bits));
    const auto forward = [&](const Views& in, PolyView view) {
      return kernels().forward_ntt(ring_, limbs_, in[0], view, *stream_);
    };
    const Polys a = Filled(shape.batch, shape.gap_words, Fill::kRandom);
    Polys a_ntt = a;
    ASSERT_OK(Run({&a}, a_ntt, forward));
    for (uint32_t g : Elements(shape.log_n)) {
      const Polys substituted = Substituted(a, g);
      Polys expected = substituted;
      ASSERT_OK(Run({&substituted}, expected, forward));
      Polys out(shape.log_n, limbs_.count, shape.batch, shape.gap_words);
      ASSERT_OK(Run({&a_ntt}, out, [&](const Views& in, PolyView view) {
        return kernels().automorphism_ntt(ring_, limbs_, g, in[0], view, *stream_);
      }));
      ASSERT_TRUE(SamePolys(out, expected)) << g;
    }
  }
}

CIPHERD_INSTANTIATE_KERNEL_SUITE(AutomorphismTest);

}  // namespace
}  // namespace cipherd::kernels
