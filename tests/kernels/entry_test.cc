// Operations entry by entry, against big integers.
#include <cstdint>
#include <functional>
#include <vector>

#include "core/math/barrett.h"
#include "core/math/shoup.h"
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

struct FillPair {
  Fill a;
  Fill b;
};
constexpr FillPair kFillPairs[] = {{Fill::kRandom, Fill::kRandom},
                                   {Fill::kZeros, Fill::kGreatest},
                                   {Fill::kGreatest, Fill::kZeros},
                                   {Fill::kGreatest, Fill::kGreatest},
                                   {Fill::kZeros, Fill::kZeros}};

class EntryTest : public testing::KernelFixture {
 protected:
  // What `formula` of the inputs' entries is modulo each limb's prime; inputs of one polynomial are
  // broadcast.
  using Formula = std::function<mpz_class(const std::vector<mpz_class>& entries, int limb)>;
  Polys Expected(const std::vector<const Polys*>& inputs, const Polys& like,
                 const Formula& formula) const {
    Polys result = like;
    std::vector<mpz_class> entries(inputs.size());
    for (int64_t o = 0; o < like.outer_count; ++o) {
      for (int l = 0; l < like.limb_count; ++l) {
        for (int64_t i = 0; i < like.n(); ++i) {
          for (size_t k = 0; k < inputs.size(); ++k) {
            entries[k] = ToMpz(inputs[k]->at(inputs[k]->outer_count == 1 ? 0 : o, l, i));
          }
          result.at(o, l, i) = Residue(formula(entries, l), basis_->prime(limbs_.prime[l]));
        }
      }
    }
    return result;
  }

  // Checks `launch` of `input_count` inputs over all shapes and fills, out of place and in place of
  // each input.
  void CheckAgainstFormula(size_t input_count, const Launch& launch, const Formula& formula) {
    for (const Shape& shape : Shapes()) {
      SCOPED_TRACE(shape);
      ASSERT_NO_FATAL_FAILURE(UseRing(shape.log_n, shape.bits));
      for (const FillPair& fills : kFillPairs) {
        const Polys a = Filled(shape.batch, shape.gap_words, fills.a);
        const Polys b = Filled(shape.batch, shape.gap_words, fills.b);
        std::vector<const Polys*> inputs = {&a};
        if (input_count == 2) inputs.push_back(&b);
        Polys out(shape.log_n, limbs_.count, shape.batch, shape.gap_words);
        const Polys expected = Expected(inputs, out, formula);
        ASSERT_OK(Run(inputs, out, launch));
        ASSERT_TRUE(SamePolys(out, expected));
        for (size_t k = 0; k < input_count; ++k) {
          Polys in_place = out;
          ASSERT_OK(Run(inputs, in_place, launch, k));
          ASSERT_TRUE(SamePolys(in_place, expected)) << "in place of input " << k;
        }
      }
    }
  }

  LimbScalars ScalarsBelowPrimes() {
    LimbScalars scalars;
    for (int l = 0; l < limbs_.count; ++l) {
      const math::Barrett& m = basis_->modulus(limbs_.prime[l]);
      // The edges of the range, then anything.
      scalars.value[l] = l == 0 ? m.q - 1 : l == 1 ? 0 : random_() % m.q;
      scalars.shoup[l] = math::ShoupQuotient(scalars.value[l], m);
    }
    return scalars;
  }
};

TEST_P(EntryTest, AddsSubtractsAndMultiplies) {
  const auto launcher = [&](BinaryOp op) {
    return [this, op](const Views& in, PolyView out) {
      return kernels().binary(ring_, limbs_, op, in[0], in[1], out, *stream_);
    };
  };
  CheckAgainstFormula(2, launcher(BinaryOp::kAdd),
                      [](const auto& x, int) -> mpz_class { return x[0] + x[1]; });
  CheckAgainstFormula(2, launcher(BinaryOp::kSubtract),
                      [](const auto& x, int) -> mpz_class { return x[0] - x[1]; });
  CheckAgainstFormula(2, launcher(BinaryOp::kMultiply),
                      [](const auto& x, int) -> mpz_class { return x[0] * x[1]; });
}

TEST_P(EntryTest, Negates) {
  CheckAgainstFormula(
      1,
      [&](const Views& in, PolyView out) {
        return kernels().negate(ring_, limbs_, in[0], out, *stream_);
      },
      [](const auto& x, int) -> mpz_class { return -x[0]; });
}

TEST_P(EntryTest, MultipliesByOneScalarALimb) {
  for (const Shape& shape : Shapes()) {
    SCOPED_TRACE(shape);
    ASSERT_NO_FATAL_FAILURE(UseRing(shape.log_n, shape.bits));
    const LimbScalars scalars = ScalarsBelowPrimes();
    const auto launch = [&](const Views& in, PolyView out) {
      return kernels().multiply_scalars(ring_, limbs_, scalars, in[0], out, *stream_);
    };
    for (Fill fill : {Fill::kRandom, Fill::kZeros, Fill::kGreatest}) {
      const Polys a = Filled(shape.batch, shape.gap_words, fill);
      Polys out(shape.log_n, limbs_.count, shape.batch, shape.gap_words);
      const Polys expected = Expected({&a}, out, [&](const auto& x, int l) -> mpz_class {
        return x[0] * ToMpz(scalars.value[l]);
      });
      ASSERT_OK(Run({&a}, out, launch));
      ASSERT_TRUE(SamePolys(out, expected));
      ASSERT_OK(Run({&a}, out, launch, 0));
      ASSERT_TRUE(SamePolys(out, expected)) << "in place";
    }
  }
}

TEST_P(EntryTest, ScalesDifferences) {
  for (const Shape& shape : Shapes()) {
    SCOPED_TRACE(shape);
    ASSERT_NO_FATAL_FAILURE(UseRing(shape.log_n, shape.bits));
    const LimbScalars scalars = ScalarsBelowPrimes();
    const auto launch = [&](const Views& in, PolyView out) {
      return kernels().subtract_scale(ring_, limbs_, scalars, in[0], in[1], out, *stream_);
    };
    for (const FillPair& fills : kFillPairs) {
      const Polys a = Filled(shape.batch, shape.gap_words, fills.a);
      const Polys b = Filled(shape.batch, shape.gap_words, fills.b);
      Polys out(shape.log_n, limbs_.count, shape.batch, shape.gap_words);
      const Polys expected = Expected({&a, &b}, out, [&](const auto& x, int l) -> mpz_class {
        return (x[0] - x[1]) * ToMpz(scalars.value[l]);
      });
      ASSERT_OK(Run({&a, &b}, out, launch));
      ASSERT_TRUE(SamePolys(out, expected));
      for (size_t k : {0, 1}) {
        ASSERT_OK(Run({&a, &b}, out, launch, k));
        ASSERT_TRUE(SamePolys(out, expected)) << "in place of input " << k;
      }
    }
  }
}

TEST_P(EntryTest, OnePolynomialIsBroadcastOverTheOther) {
  ASSERT_NO_FATAL_FAILURE(UseRing(10, {50, 61}));
  const Polys one = Filled(1, 0, Fill::kRandom);
  const Polys many = Filled(3, 9, Fill::kRandom);
  const auto subtract = [&](const Views& in, PolyView out) {
    return kernels().binary(ring_, limbs_, BinaryOp::kSubtract, in[0], in[1], out, *stream_);
  };
  const auto difference = [](const auto& x, int) -> mpz_class { return x[0] - x[1]; };
  for (const auto& inputs : {std::vector{&one, &many}, std::vector{&many, &one}}) {
    Polys out(10, 2, 3);
    const Polys expected = Expected(inputs, out, difference);
    ASSERT_OK(Run(inputs, out, subtract));
    EXPECT_TRUE(SamePolys(out, expected));
  }
}

TEST_P(EntryTest, AddsProductsToASum) {
  for (const Shape& shape : Shapes()) {
    SCOPED_TRACE(shape);
    ASSERT_NO_FATAL_FAILURE(UseRing(shape.log_n, shape.bits));
    for (const FillPair& fills : kFillPairs) {
      const Polys a = Filled(shape.batch, shape.gap_words, fills.a);
      // One plaintext for a whole batch.
      const Polys b = Filled(1, 0, fills.b);
      const Polys before = Filled(shape.batch, 3, fills.a);
      Polys sum = before;
      const Polys expected =
          Expected({&a, &b, &before}, before,
                   [](const auto& x, int) -> mpz_class { return x[0] * x[1] + x[2]; });
      ASSERT_OK(Run({&a, &b}, sum, [&](const Views& in, PolyView out) {
        return kernels().multiply_add(ring_, limbs_, in[0], in[1], out, *stream_);
      }));
      ASSERT_TRUE(SamePolys(sum, expected));
    }
  }
}

TEST_P(EntryTest, TensorProductHasThreeComponentsPerItem) {
  for (const Shape& shape : Shapes()) {
    SCOPED_TRACE(shape);
    ASSERT_NO_FATAL_FAILURE(UseRing(shape.log_n, shape.bits));
    for (const FillPair& fills : kFillPairs) {
      const Polys a = Filled(2 * shape.batch, shape.gap_words, fills.a);
      const Polys b = Filled(2 * shape.batch, 0, fills.b);
      Polys out(shape.log_n, limbs_.count, 3 * shape.batch, shape.gap_words);
      Polys expected = out;
      for (int64_t item = 0; item < shape.batch; ++item) {
        for (int l = 0; l < limbs_.count; ++l) {
          const uint64_t q = basis_->prime(l);
          for (int64_t i = 0; i < out.n(); ++i) {
            const mpz_class a0 = ToMpz(a.at(item, l, i));
            const mpz_class a1 = ToMpz(a.at(shape.batch + item, l, i));
            const mpz_class b0 = ToMpz(b.at(item, l, i));
            const mpz_class b1 = ToMpz(b.at(shape.batch + item, l, i));
            expected.at(item, l, i) = Residue(a0 * b0, q);
            expected.at(shape.batch + item, l, i) = Residue(a0 * b1 + a1 * b0, q);
            expected.at(2 * shape.batch + item, l, i) = Residue(a1 * b1, q);
          }
        }
      }
      ASSERT_OK(Run({&a, &b}, out, [&](const Views& in, PolyView view) {
        return kernels().tensor_product(ring_, limbs_, in[0], in[1], view, *stream_);
      }));
      ASSERT_TRUE(SamePolys(out, expected));
    }
  }
}

TEST_P(EntryTest, SquareReadsOneOperandTwice) {
  ASSERT_NO_FATAL_FAILURE(UseRing(10, {61, 40}));
  const Polys a = Filled(2, 0, Fill::kRandom);
  Polys twice(10, 2, 3);
  Polys once(10, 2, 3);
  ASSERT_OK(Run({&a, &a}, twice, [&](const Views& in, PolyView view) {
    return kernels().tensor_product(ring_, limbs_, in[0], in[1], view, *stream_);
  }));
  ASSERT_OK(Run({&a}, once, [&](const Views& in, PolyView view) {
    return kernels().tensor_product(ring_, limbs_, in[0], in[0], view, *stream_);
  }));
  EXPECT_TRUE(SamePolys(once, twice));
}

TEST_P(EntryTest, CopiesBetweenStridesDropsLimbsAndBroadcasts) {
  ASSERT_NO_FATAL_FAILURE(UseRing(10, {50, 61, 40}));
  const Polys three = Filled(2, 11, Fill::kRandom);
  for (int kept = 1; kept <= 3; ++kept) {
    Polys out(10, kept, 2, 4);
    Polys expected = out;
    for (int64_t o = 0; o < 2; ++o) {
      for (int l = 0; l < kept; ++l) {
        for (int64_t i = 0; i < out.n(); ++i) expected.at(o, l, i) = three.at(o, l, i);
      }
    }
    ASSERT_OK(Run({&three}, out, [&](const Views& in, PolyView view) {
      return kernels().copy(ring_, kept, in[0], view, *stream_);
    }));
    EXPECT_TRUE(SamePolys(out, expected)) << kept;
  }
  const Polys one = Filled(1, 0, Fill::kRandom);
  Polys out(10, 3, 3, 1);
  Polys expected = out;
  for (int64_t o = 0; o < 3; ++o) {
    for (int64_t w = 0; w < 3 * out.n(); ++w) expected.at(o, 0, w) = one.at(0, 0, w);
  }
  ASSERT_OK(Run({&one}, out, [&](const Views& in, PolyView view) {
    return kernels().copy(ring_, 3, in[0], view, *stream_);
  }));
  EXPECT_TRUE(SamePolys(out, expected));
}

TEST_P(EntryTest, LiftsSignedCoefficients) {
  for (const Shape& shape : Shapes()) {
    SCOPED_TRACE(shape);
    ASSERT_NO_FATAL_FAILURE(UseRing(shape.log_n, shape.bits));
    // One limb of words that are read as signed numbers.
    Polys in(shape.log_n, 1, shape.batch, shape.gap_words);
    for (uint64_t& word : in.words) word = random_() >> (random_() % 63);
    const auto q = basis_->prime(0);
    const std::vector<uint64_t> edges = {
        0, 1, uint64_t(-1), uint64_t{1} << 63, INT64_MAX, uint64_t(0) - q, q, q - 1};
    std::copy(edges.begin(), edges.end(), in.words.begin());
    for (int64_t o = 0; o < shape.batch; ++o) {
      for (int64_t i = 8; i < in.n(); i += 2) in.at(o, 0, i) = uint64_t{0} - in.at(o, 0, i);
    }
    Polys out(shape.log_n, limbs_.count, shape.batch, 3);
    Polys expected = out;
    for (int64_t o = 0; o < shape.batch; ++o) {
      for (int l = 0; l < limbs_.count; ++l) {
        for (int64_t i = 0; i < out.n(); ++i) {
          const uint64_t word = in.at(o, 0, i);
          const mpz_class value = word >> 63 ? -ToMpz(uint64_t{0} - word) : ToMpz(word);
          expected.at(o, l, i) = Residue(value, basis_->prime(l));
        }
      }
    }
    ASSERT_OK(Run({&in}, out, [&](const Views& views, PolyView view) {
      return kernels().lift_signed(ring_, limbs_, reinterpret_cast<int64_t*>(views[0].data),
                                   views[0].outer_stride, view, *stream_);
    }));
    EXPECT_TRUE(SamePolys(out, expected));
  }
}

CIPHERD_INSTANTIATE_KERNEL_SUITE(EntryTest);

}  // namespace
}  // namespace cipherd::kernels
