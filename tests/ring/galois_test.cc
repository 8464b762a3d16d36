#include "core/ring/galois.h"

#include <complex>
#include <cstdint>
#include <numbers>
#include <set>
#include <vector>

#include "core/ring/primes.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::ring {
namespace {

using ::cipherd::testing::StatusIs;

constexpr uint32_t kGenerators[] = {3, 5, 11, 13};

TEST(Galois, RotationBringsSlotsFromTheRightAndWraps) {
  for (int log_n : {4, 10, 17}) {
    for (uint32_t generator : kGenerators) {
      const std::vector<uint32_t> exponents = SlotExponents(generator, log_n);
      const auto slots = static_cast<int64_t>(exponents.size());
      const uint64_t mask = (uint64_t{2} << log_n) - 1;
      for (int64_t steps : {int64_t{0}, int64_t{1}, int64_t{3}, slots - 1, slots, slots + 5,
                            int64_t{-1}, -slots - 2, INT64_MIN, INT64_MAX}) {
        const uint64_t element = RotationElement(steps, generator, log_n);
        EXPECT_OK(ValidateGaloisElement(element, log_n));
        // a(X^g) at zeta^e is a at zeta^(g·e): slot j of the result is slot j + steps of the
        // source.
        for (int64_t j = 0; j < slots; j += 7) {
          const int64_t source = ((j + steps % slots) % slots + slots) % slots;
          ASSERT_EQ(element * exponents[j] & mask, exponents[source]);
        }
      }
    }
  }
}

TEST(Galois, SlotsAndTheirConjugatesAreAllRoots) {
  for (uint32_t generator : kGenerators) {
    std::set<uint32_t> exponents;
    for (uint32_t e : SlotExponents(generator, 10)) {
      exponents.insert(e);
      exponents.insert(e * ConjugationElement(10) & 2047);
    }
    EXPECT_EQ(exponents.size(), 1024u);
  }
}

// The same promise over the complex numbers, which is what a client sees.
TEST(Galois, RotatedPolynomialHasRotatedSlots) {
  const int log_n = 4;
  const int n = 16;
  std::vector<double> a(n);
  for (int i = 0; i < n; ++i) a[i] = i * i - 3.0 * i + 1;
  const auto value = [&](const std::vector<double>& coefficients, uint32_t exponent) {
    std::complex<double> sum = 0;
    for (int i = 0; i < n; ++i) {
      sum += coefficients[i] * std::polar(1.0, std::numbers::pi * exponent * i / n);
    }
    return sum;
  };
  const std::vector<uint32_t> exponents = SlotExponents(5, log_n);
  for (int steps : {1, 3, -2}) {
    const uint32_t element = RotationElement(steps, 5, log_n);
    std::vector<double> rotated(n);
    for (int i = 0; i < n; ++i) {
      const uint32_t k = i * element % (2 * n);
      rotated[k % n] = k < static_cast<uint32_t>(n) ? a[i] : -a[i];
    }
    for (int j = 0; j < n / 2; ++j) {
      const int source = (j + steps + n / 2) % (n / 2);
      // Terms of size 200, rounded to 53 bits, 16 of them.
      EXPECT_LT(std::abs(value(rotated, exponents[j]) - value(a, exponents[source])), 1e-10);
    }
  }
}

TEST(Galois, InverseElementInverts) {
  for (int log_n : {4, 13, 17}) {
    const uint64_t mask = (uint64_t{2} << log_n) - 1;
    for (uint64_t g : {uint64_t{1}, uint64_t{5}, uint64_t{31}, mask, mask / 3 | 1}) {
      EXPECT_EQ(g * InverseElement(static_cast<uint32_t>(g), log_n) & mask, 1u);
    }
  }
}

TEST(Galois, NttIndicesAndExponentsInvertEachOther) {
  std::set<uint32_t> exponents;
  for (uint32_t i = 0; i < 1024; ++i) {
    const uint32_t exponent = NttIndexToExponent(i, 10);
    exponents.insert(exponent);
    EXPECT_EQ(exponent % 2, 1u);
    EXPECT_EQ(NttExponentToIndex(exponent, 10), i);
  }
  EXPECT_EQ(exponents.size(), 1024u);
  EXPECT_EQ(NttIndexToExponent(0, 10), 1u);
  EXPECT_EQ(NttIndexToExponent(1, 10), 1025u);
}

TEST(Galois, ValidationRefusesWhatIsNoElementOrGenerator) {
  EXPECT_OK(ValidateGaloisElement(1, 4));
  EXPECT_OK(ValidateGaloisElement(31, 4));
  EXPECT_THAT(ValidateGaloisElement(0, 4), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ValidateGaloisElement(2, 4), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ValidateGaloisElement(33, 4), StatusIs(absl::StatusCode::kInvalidArgument));
  for (uint32_t generator : {0u, 1u, 2u, 4u, 7u, 9u, 15u, 31u, 37u}) {
    EXPECT_THAT(ValidateGenerator(generator, 4), StatusIs(absl::StatusCode::kInvalidArgument))
        << generator;
  }
  for (uint32_t generator : kGenerators) EXPECT_OK(ValidateGenerator(generator, 4));
}

}  // namespace
}  // namespace cipherd::ring
