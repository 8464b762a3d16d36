#include "core/ckks/encoder.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "core/ckks/context.h"
#include "core/ckks/host_ring.h"
#include "core/ckks/slot_transform.h"
#include "core/ring/galois.h"
#include "core/ring/rns_basis.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ckks/ckks_fixture.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::ckks {
namespace {

using ::cipherd::testing::MaxDistance;
using ::cipherd::testing::NoiseModel;
using ::cipherd::testing::Slots;
using ::cipherd::testing::SmallParameters;
using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;
using Complex = std::complex<double>;

std::shared_ptr<const Context> MakeContext(const ContextParameters& parameters) {
  return Context::Create(parameters, SecurityPolicy::kAllowInsecure).value();
}

Slots RandomSlots(int64_t count, uint64_t seed) {
  secret::Random random = secret::Random::FromSeedForTesting(seed);
  Slots slots(static_cast<size_t>(count));
  for (Complex& slot : slots) {
    const double real = 2 * random.NextUnitDouble() - 1;
    slot = {real, 2 * random.NextUnitDouble() - 1};
  }
  return slots;
}

// Slot j is the value at zeta^(generator^j), computed term by term.
TEST(SlotTransformTest, SlotsAreValuesAtPowersOfTheGenerator) {
  for (int log_n : {4, 5, 8}) {
    for (uint32_t generator : {3u, 5u, 11u, 13u}) {
      SCOPED_TRACE(::testing::Message() << "log_n " << log_n << " generator " << generator);
      const int64_t n = int64_t{1} << log_n;
      const internal::SlotTransform transform(generator, log_n);
      secret::Random random = secret::Random::FromSeedForTesting(7);
      std::vector<double> coefficients(static_cast<size_t>(n));
      for (double& c : coefficients) c = 2 * random.NextUnitDouble() - 1;
      const Slots slots = transform.ToSlots(coefficients);
      const std::vector<uint32_t> exponents = ring::SlotExponents(generator, log_n);
      ASSERT_EQ(static_cast<int64_t>(slots.size()), n / 2);
      for (int64_t j = 0; j < n / 2; ++j) {
        Complex expected = 0;
        for (int64_t i = 0; i < n; ++i) {
          const int64_t turns = (i * exponents[j]) % (2 * n);
          expected +=
              coefficients[i] * std::polar(1.0, std::numbers::pi * static_cast<double>(turns) /
                                                    static_cast<double>(n));
        }
        EXPECT_LT(std::abs(slots[j] - expected), 1e-12 * static_cast<double>(n));
      }
      const std::vector<double> back = transform.ToCoefficients(slots);
      for (int64_t i = 0; i < n; ++i)
        EXPECT_NEAR(back[i], coefficients[i], 1e-13 * static_cast<double>(n));
    }
  }
}

TEST(EncoderTest, DecodesWhatItEncodedAtEveryDepth) {
  const ContextParameters parameters = SmallParameters(11);
  const Encoder encoder(MakeContext(parameters));
  const NoiseModel noise(parameters);
  const Slots slots = RandomSlots(parameters.slot_count(), 1);
  for (int depth = 0; depth <= parameters.max_depth(); ++depth) {
    for (double scale : {0x1p30, 0x1p40}) {
      ASSERT_OK_AND_ASSIGN(const Plaintext plain, encoder.EncodeComplex(slots, depth, scale));
      EXPECT_EQ(plain.limb_count(), parameters.active_q_count(depth));
      ASSERT_OK_AND_ASSIGN(const Slots back, encoder.Decode(plain));
      // noise_model.h: the rounding of N coefficients, and the transform both ways.
      EXPECT_LE(MaxDistance(back, slots), noise.Encode(std::sqrt(2.0), scale).error / scale);
    }
  }
}

TEST(EncoderTest, CoefficientsBeyondOneWordAreExact) {
  // 2^100 and a few: far above 2^62, and every binary64 of this size is an integer.
  const ContextParameters parameters = SmallParameters(4);
  const Encoder encoder(MakeContext(parameters));
  const std::vector<double> slots = {0x1.123456789abcdp0, -0x1.8p-1};
  ASSERT_OK_AND_ASSIGN(const Plaintext plain, encoder.Encode(slots, 0, 0x1p100));
  ASSERT_OK_AND_ASSIGN(const Slots back, encoder.Decode(plain));
  Slots expected(static_cast<size_t>(parameters.slot_count()));
  expected[0] = slots[0];
  expected[1] = slots[1];
  EXPECT_LE(MaxDistance(back, expected), 0x1p-48);
}

TEST(EncoderTest, DecodesNegativeAndPositiveEndsOfTheModulus) {
  // Constant polynomials: the value in every slot, exactly reconstructed.
  const std::shared_ptr<const Context> context = MakeContext(SmallParameters(4));
  const Encoder encoder(context);
  for (double value : {1.0, -1.0, 0x1p61, -0x1p61, 0x1p120, -0x1p120}) {
    const std::vector<double> slots(8, value);
    ASSERT_OK_AND_ASSIGN(const Plaintext plain, encoder.Encode(slots, 0, 1));
    ASSERT_OK_AND_ASSIGN(const Slots back, encoder.Decode(plain));
    for (const Complex& slot : back) {
      EXPECT_EQ(slot.real(), value);
      EXPECT_EQ(slot.imag(), 0);
    }
  }
}

TEST(EncoderTest, DecodesEitherDomain) {
  const std::shared_ptr<const Context> context = MakeContext(SmallParameters(6));
  const Encoder encoder(context);
  const Slots slots = RandomSlots(32, 3);
  ASSERT_OK_AND_ASSIGN(Plaintext plain, encoder.EncodeComplex(slots, 1, 0x1p40));
  ASSERT_OK_AND_ASSIGN(const Slots from_ntt, encoder.Decode(plain));
  uint64_t* words = plain.data.data_as<uint64_t>();
  for (int64_t id : context->parameters().ActivePrimeIds(1, false)) {
    InverseNttOnHost(*context, id, {words, 64});
    words += 64;
  }
  plain.domain = value::PolynomialDomain::kCoefficient;
  ASSERT_OK_AND_ASSIGN(const Slots from_coefficients, encoder.Decode(plain));
  EXPECT_EQ(from_ntt, from_coefficients);
}

// Modulo the primes of P, the coefficients are those modulo Q.
TEST(EncoderTest, LimbsOfPFollowThoseOfQ) {
  const auto context = MakeContext(SmallParameters(6));
  const ContextParameters& parameters = context->parameters();
  const Encoder encoder(context);
  const Slots slots = RandomSlots(parameters.slot_count(), 9);
  const double scale = 0x1p20;
  const int64_t n = parameters.ring_degree();
  for (int depth = 0; depth <= parameters.max_depth(); ++depth) {
    ASSERT_OK_AND_ASSIGN(const Plaintext q, encoder.EncodeComplex(slots, depth, scale));
    ASSERT_OK_AND_ASSIGN(const Plaintext qp,
                         encoder.EncodeComplex(slots, depth, scale, value::ModulusBasis::kQP));
    const std::vector<int64_t> ids = parameters.ActivePrimeIds(depth, /*with_p=*/true);
    ASSERT_EQ(qp.limb_count(), static_cast<int>(ids.size()));
    const auto* words = qp.data.data_as<const uint64_t>();
    EXPECT_TRUE(
        std::equal(words, words + q.data.element_count(), q.data.data_as<const uint64_t>()));
    // Coefficients are far below all primes.
    std::vector<int64_t> first;
    for (size_t l = 0; l < ids.size(); ++l) {
      std::vector<uint64_t> limb(words + static_cast<int64_t>(l) * n,
                                 words + static_cast<int64_t>(l + 1) * n);
      InverseNttOnHost(*context, ids[l], limb);
      const uint64_t prime = context->basis().prime(static_cast<int>(ids[l]));
      std::vector<int64_t> centred;
      for (uint64_t x : limb) {
        centred.push_back(static_cast<int64_t>(x) -
                          (x > prime / 2 ? static_cast<int64_t>(prime) : 0));
      }
      if (l == 0) first = centred;
      EXPECT_EQ(centred, first) << "limb " << l;
    }
  }
}

TEST(EncoderTest, PlaintextsOverQPAreNoMessages) {
  const auto context = MakeContext(SmallParameters(6));
  const Encoder encoder(context);
  ASSERT_OK_AND_ASSIGN(const Plaintext qp, encoder.EncodeComplex(RandomSlots(4, 9), 1, 0x1p20,
                                                                 value::ModulusBasis::kQP));
  EXPECT_THAT(encoder.Decode(qp), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("plaintext.basis: expected Q, got QP")));
  const value::ExactValue value = qp.ToValue(context->parameters(), context->id());
  EXPECT_EQ(value.metadata.basis, value::ModulusBasis::kQP);
  EXPECT_EQ(value.metadata.prime_ids, context->parameters().ActivePrimeIds(1, true));
  EXPECT_FALSE(Plaintext::FromValue(value, "x", context->parameters(), context->id()).ok());
}

TEST(EncoderTest, RefusesWhatDoesNotFit) {
  const ContextParameters parameters = SmallParameters(4);
  const Encoder encoder(MakeContext(parameters));
  const auto refuses = [&](const std::vector<double>& slots, int depth, double scale,
                           const char* message) {
    EXPECT_THAT(encoder.Encode(slots, depth, scale),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  };
  refuses(std::vector<double>(9), 0, 0x1p40, "slots: expected at most 8, got 9");
  refuses({1}, 4, 0x1p40, "depth: expected 0 to 3, got 4");
  refuses({1}, -1, 0x1p40, "depth: expected 0 to 3, got -1");
  refuses({1}, 0, 0, "scale: expected a finite number above 0");
  refuses({1}, 0, INFINITY, "scale: expected a finite number above 0");
  refuses({1, NAN}, 0, 0x1p40, "slots[1]: expected a finite number");
  // Base prime of 50 bits: a quarter of it is below 2^48.
  refuses(std::vector<double>(8, 1.0), 3, 0x1p49, "a quarter of the modulus at depth 3, got 2^49");
  refuses(std::vector<double>(8, 1e300), 0, 1e300, "a quarter of the modulus at depth 0");
  EXPECT_OK(encoder.Encode(std::vector<double>(8, 1.0), 3, 0x1p47));
  EXPECT_OK(encoder.Encode({}, 0, 0x1p40));
}

}  // namespace
}  // namespace cipherd::ckks
