// Statistics of the samplers. Every test is seeded, so that it passes or fails for ever; the
// probability that a sound sampler would have failed it under a random seed is stated.
#include "core/secret/samplers.h"

#include <cmath>
#include <map>
#include <vector>

#include "core/secret/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cipherd::secret {
namespace {

// Sum of (observed - expected)^2 / expected.
double ChiSquare(const std::vector<double>& observed, const std::vector<double>& expected) {
  double sum = 0;
  for (size_t i = 0; i < observed.size(); ++i) {
    sum += (observed[i] - expected[i]) * (observed[i] - expected[i]) / expected[i];
  }
  return sum;
}

// Density of the discrete Gaussian on [-30, 30] at k ≥ 0, both signs together.
long double MagnitudeProbability(int k) {
  const auto density = [](int x) {
    const long double sigma = 3.19L;
    return std::exp(-static_cast<long double>(x) * x / (2 * sigma * sigma));
  };
  long double total = density(0);
  for (int x = 1; x <= kErrorTailCut; ++x) total += 2 * density(x);
  return (k == 0 ? density(0) : 2 * density(k)) / total;
}

// Extended precision has 64 bits: entries agree to a few units of 2^-63.
TEST(SamplersTest, ErrorTableIsTheCumulativeDistribution) {
  long double cumulative = 0;
  for (int k = 0; k <= kErrorTailCut; ++k) {
    cumulative += MagnitudeProbability(k);
    const long double entry = static_cast<long double>(kErrorMagnitudeTable[k]) * 0x1p-63L;
    EXPECT_NEAR(static_cast<double>(entry - cumulative), 0, 0x1p-58) << k;
    if (k > 0) {
      EXPECT_GT(kErrorMagnitudeTable[k], kErrorMagnitudeTable[k - 1]);
    }
  }
  EXPECT_EQ(kErrorMagnitudeTable[kErrorTailCut], uint64_t{1} << 63);
}

// Chi-square, 26 degrees of freedom (-12 … 12 and the two tails): 93 is exceeded with probability
// below 10^-8. Mean and variance within seven standard errors: below 10^-11 each.
TEST(SamplersTest, ErrorsAreDiscreteGaussian) {
  constexpr int kCount = 1 << 20;
  std::vector<int8_t> errors(kCount);
  Random random = Random::FromSeedForTesting(11);
  SampleError(random, errors);
  double sum = 0;
  double squares = 0;
  std::vector<double> observed(27);
  for (int8_t error : errors) {
    ASSERT_LE(std::abs(error), kErrorTailCut);
    sum += error;
    squares += error * error;
    observed[std::min(std::max(error + 13, 0), 26)] += 1;
  }
  std::vector<double> expected(27);
  double inside = 0;
  for (int x = -12; x <= 12; ++x) {
    const auto probability = static_cast<double>(MagnitudeProbability(std::abs(x)));
    expected[x + 13] = kCount * (x == 0 ? probability : probability / 2);
    inside += expected[x + 13];
  }
  expected[0] = expected[26] = (kCount - inside) / 2;
  EXPECT_LT(ChiSquare(observed, expected), 93);
  EXPECT_NEAR(sum / kCount, 0, 7 * 3.19 / std::sqrt(kCount));
  const double variance = 3.19 * 3.19;
  EXPECT_NEAR(squares / kCount, variance, 7 * variance * std::sqrt(2.0 / kCount));
}

TEST(SamplersTest, ErrorsOfNeighboursAreUncorrelated) {
  constexpr int kCount = 1 << 18;
  std::vector<int8_t> errors(kCount);
  Random random = Random::FromSeedForTesting(12);
  SampleError(random, errors);
  for (int lag : {1, 2, 512}) {
    double sum = 0;
    for (int i = lag; i < kCount; ++i) sum += errors[i] * errors[i - lag];
    // Products of independent errors: mean 0, standard deviation sigma^2; seven standard errors.
    EXPECT_NEAR(sum / kCount, 0, 7 * 3.19 * 3.19 / std::sqrt(kCount)) << lag;
  }
}

// Chi-square, 2 degrees of freedom: 42 is exceeded with probability exp(-21) < 10^-9. For pairs of
// neighbours, 8 degrees of freedom: 58 with probability below 10^-8.
TEST(SamplersTest, TernaryIsUniform) {
  constexpr int kCount = 300000;
  std::vector<int8_t> ternary(kCount);
  Random random = Random::FromSeedForTesting(13);
  SampleUniformTernary(random, ternary);
  std::vector<double> observed(3);
  std::vector<double> pairs(9);
  for (int i = 0; i < kCount; ++i) {
    ASSERT_LE(std::abs(ternary[i]), 1);
    observed[ternary[i] + 1] += 1;
    if (i % 2 == 1) pairs[3 * (ternary[i - 1] + 1) + ternary[i] + 1] += 1;
  }
  EXPECT_LT(ChiSquare(observed, std::vector<double>(3, kCount / 3.0)), 42);
  EXPECT_LT(ChiSquare(pairs, std::vector<double>(9, kCount / 18.0)), 58);
}

// Mean, variance and fourth moment within seven standard errors; nothing beyond 8.6 standard
// deviations.
TEST(SamplersTest, RoundedGaussianHasItsMoments) {
  constexpr int kCount = 200001;
  for (double sigma : {0x1p10, 0x1p45}) {
    std::vector<int64_t> noise(kCount);
    Random random = Random::FromSeedForTesting(14);
    SampleRoundedGaussian(random, sigma, noise);
    double mean = 0;
    double variance = 0;
    double fourth = 0;
    for (int64_t x : noise) {
      const double z = static_cast<double>(x) / sigma;
      ASSERT_LT(std::fabs(z), 8.6);
      mean += z / kCount;
      variance += z * z / kCount;
      fourth += z * z * z * z / kCount;
    }
    EXPECT_NEAR(mean, 0, 7 / std::sqrt(kCount));
    EXPECT_NEAR(variance, 1, 7 * std::sqrt(2.0 / kCount));
    EXPECT_NEAR(fourth, 3, 7 * std::sqrt(96.0 / kCount));
  }
}

}  // namespace
}  // namespace cipherd::secret
