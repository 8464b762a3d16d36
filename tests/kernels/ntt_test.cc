#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/kernels/host/limb_ntt.h"
#include "core/math/bit_reverse.h"
#include "core/math/mulhi.h"
#include "tests/kernels/kernel_fixture.h"
#include "tests/math/mpz.h"

namespace cipherd::kernels {
namespace {

using ::cipherd::testing::Fill;
using ::cipherd::testing::Polys;
using ::cipherd::testing::SamePolys;
using ::cipherd::testing::Shape;
using ::cipherd::testing::Shapes;
using ::cipherd::testing::ToMpz;

constexpr Fill kFills[] = {Fill::kRandom, Fill::kZeros, Fill::kGreatest};

class NttTest : public testing::KernelFixture {
 protected:
  absl::Status Forward(const Polys& in, Polys& out, bool in_place = false) {
    return Run(
        {&in}, out,
        [&](const std::vector<PolyView>& inputs, PolyView view) {
          return kernels().forward_ntt(ring_, limbs_, inputs[0], view, *stream_);
        },
        in_place ? std::optional<size_t>(0) : std::nullopt);
  }
  absl::Status Inverse(const Polys& in, Polys& out, bool in_place = false) {
    return Run(
        {&in}, out,
        [&](const std::vector<PolyView>& inputs, PolyView view) {
          return kernels().inverse_ntt(ring_, limbs_, inputs[0], view, *stream_);
        },
        in_place ? std::optional<size_t>(0) : std::nullopt);
  }

  // The definition: the value of one limb at psi^(2·bitrev(entry)+1), by Horner's rule.
  uint64_t Value(const Polys& a, int64_t outer, int limb, uint32_t entry) const {
    const uint64_t q = basis_->prime(limbs_.prime[limb]);
    mpz_class point;
    mpz_powm_ui(point.get_mpz_t(), ToMpz(basis_->psi(limbs_.prime[limb])).get_mpz_t(),
                2 * math::BitReverse(entry, a.log_n) + 1, ToMpz(q).get_mpz_t());
    const uint64_t x = testing::ToWord(point);
    uint64_t value = 0;
    for (int64_t i = a.n() - 1; i >= 0; --i) {
      value = static_cast<uint64_t>(
          (static_cast<math::uint128_t>(value) * x + a.at(outer, limb, i)) % q);
    }
    return value;
  }
};

TEST_P(NttTest, EveryEntryIsTheValueOfItsDefinition) {
  for (const Shape& shape : Shapes()) {
    if (shape.log_n > 10) continue;
    SCOPED_TRACE(shape);
    ASSERT_NO_FATAL_FAILURE(UseRing(shape.log_n, shape.bits));
    const Polys in = Filled(shape.batch, shape.gap_words, Fill::kRandom);
    Polys out(shape.log_n, limbs_.count, shape.batch, shape.gap_words);
    ASSERT_OK(Forward(in, out));
    for (int64_t o = 0; o < shape.batch; ++o) {
      for (int l = 0; l < limbs_.count; ++l) {
        // All entries of small rings, every seventh of the others.
        for (int64_t i = 0; i<in.n(); i += shape.log_n> 5 ? 7 : 1) {
          ASSERT_EQ(out.at(o, l, i), Value(in, o, l, i)) << o << " " << l << " " << i;
        }
      }
    }
  }
}

// Every degree has its own split into passes.
TEST_P(NttTest, EveryDegreeMatchesItsDefinitionAndInverts) {
  for (int log_n = ring::kMinLogN; log_n <= ring::kMaxLogN; ++log_n) {
    SCOPED_TRACE(log_n);
    ASSERT_NO_FATAL_FAILURE(UseRing(log_n, {61, 50, 47}));
    const Polys in = Filled(1, 0, Fill::kRandom);
    Polys out(log_n, 3, 1);
    ASSERT_OK(Forward(in, out));
    const auto last = static_cast<uint32_t>(in.n() - 1);
    for (uint32_t entry : {0u, 1u, 2u, 5u, last / 2, last / 2 + 1, last - 1, last}) {
      for (int l = 0; l < 3; ++l) ASSERT_EQ(out.at(0, l, entry), Value(in, 0, l, entry)) << entry;
    }
    Polys back(log_n, 3, 1);
    ASSERT_OK(Inverse(out, back));
    ASSERT_TRUE(SamePolys(back, in));
  }
}

TEST_P(NttTest, InverseUndoesForwardForEveryFillAndStride) {
  for (const Shape& shape : Shapes()) {
    SCOPED_TRACE(shape);
    ASSERT_NO_FATAL_FAILURE(UseRing(shape.log_n, shape.bits));
    for (Fill fill : kFills) {
      const Polys in = Filled(shape.batch, shape.gap_words, fill);
      Polys out(shape.log_n, limbs_.count, shape.batch, shape.gap_words);
      ASSERT_OK(Forward(in, out));
      for (int64_t o = 0; o < shape.batch; ++o) {
        for (int l = 0; l < limbs_.count; ++l) {
          for (int64_t i = 0; i < in.n(); ++i) {
            ASSERT_LT(out.at(o, l, i), basis_->prime(l)) << o << " " << l << " " << i;
          }
        }
      }
      Polys back(shape.log_n, limbs_.count, shape.batch, shape.gap_words);
      ASSERT_OK(Inverse(out, back));
      ASSERT_TRUE(SamePolys(back, in));
    }
  }
}

TEST_P(NttTest, InPlaceGivesTheSameWords) {
  for (const Shape& shape : Shapes()) {
    SCOPED_TRACE(shape);
    ASSERT_NO_FATAL_FAILURE(UseRing(shape.log_n, shape.bits));
    const Polys in = Filled(shape.batch, shape.gap_words, Fill::kRandom);
    Polys out = in;
    Polys in_place = in;
    ASSERT_OK(Forward(in, out));
    ASSERT_OK(Forward(in, in_place, /*in_place=*/true));
    EXPECT_TRUE(SamePolys(in_place, out));
    ASSERT_OK(Inverse(in, out));
    ASSERT_OK(Inverse(in, in_place, /*in_place=*/true));
    EXPECT_TRUE(SamePolys(in_place, out));
  }
}

TEST_P(NttTest, OnePolynomialIsBroadcastAndLimbsTakeAnyPrimes) {
  ASSERT_NO_FATAL_FAILURE(UseRing(10, {50, 60, 61, 30}));
  // Every limb modulo another prime than its position says, one prime twice.
  limbs_ = testing::LimbsOf({3, 1, 1});
  const Polys in = Filled(1, 0, Fill::kRandom);
  Polys out(10, 3, 4, 5);
  ASSERT_OK(Forward(in, out));
  for (int64_t o = 0; o < 4; ++o) {
    for (int l = 0; l < 3; ++l) {
      for (uint32_t i : {0u, 17u, 1023u}) ASSERT_EQ(out.at(o, l, i), Value(in, 0, l, i));
    }
  }
}

TEST_P(NttTest, PointwiseProductIsNegacyclicConvolution) {
  for (int log_n : {4, 9}) {
    ASSERT_NO_FATAL_FAILURE(UseRing(log_n, {61, 30}));
    const Polys a = Filled(1, 0, Fill::kRandom);
    const Polys b = Filled(1, 0, Fill::kGreatest);
    Polys a_ntt = a;
    Polys b_ntt = b;
    ASSERT_OK(Forward(a, a_ntt));
    ASSERT_OK(Forward(b, b_ntt));
    Polys product = a;
    ASSERT_OK(Run({&a_ntt, &b_ntt}, product, [&](const auto& inputs, PolyView out) {
      return kernels().binary(ring_, limbs_, BinaryOp::kMultiply, inputs[0], inputs[1], out,
                              *stream_);
    }));
    Polys result = a;
    ASSERT_OK(Inverse(product, result));
    for (int l = 0; l < limbs_.count; ++l) {
      const uint64_t q = basis_->prime(l);
      std::vector<mpz_class> expected(a.n());
      for (int64_t i = 0; i < a.n(); ++i) {
        for (int64_t j = 0; j < a.n(); ++j) {
          const mpz_class term = ToMpz(a.at(0, l, i)) * ToMpz(b.at(0, l, j));
          if (i + j < a.n()) {
            expected[i + j] += term;
          } else {
            expected[i + j - a.n()] -= term;
          }
        }
      }
      for (int64_t i = 0; i < a.n(); ++i) {
        ASSERT_EQ(result.at(0, l, i), testing::Residue(expected[i], q)) << l << " " << i;
      }
    }
  }
}

TEST_P(NttTest, HostTransformOfOneLimbAgreesBitForBit) {
  for (const Shape& shape : Shapes()) {
    ASSERT_NO_FATAL_FAILURE(UseRing(shape.log_n, shape.bits));
    const Polys in = Filled(1, 0, Fill::kRandom);
    Polys forward = in;
    Polys inverse = in;
    ASSERT_OK(Forward(in, forward));
    ASSERT_OK(Inverse(in, inverse));
    Polys limb_forward = in;
    Polys limb_inverse = in;
    for (int l = 0; l < limbs_.count; ++l) {
      const ring::PrimeConstants& prime = basis_->tables().primes[l];
      host::ForwardNttOfLimb(prime, shape.log_n, &in.words[l * in.n()],
                             &limb_forward.words[l * in.n()]);
      host::InverseNttOfLimb(prime, shape.log_n, &in.words[l * in.n()],
                             &limb_inverse.words[l * in.n()]);
    }
    EXPECT_TRUE(SamePolys(limb_forward, forward));
    EXPECT_TRUE(SamePolys(limb_inverse, inverse));
  }
}

CIPHERD_INSTANTIATE_KERNEL_SUITE(NttTest);

}  // namespace
}  // namespace cipherd::kernels
