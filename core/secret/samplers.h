// Samplers of the distributions that CKKS draws secrets and errors from.
//
// None branches on a sample that it returns; rejected candidates reveal nothing about accepted
// ones.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "core/secret/random.h"

namespace cipherd::secret {

// -1, 0 and 1 with probability 1/3 each: secrets, and the ephemeral of public-key encryption. One
// byte a candidate, 255 rejected.
void SampleUniformTernary(Random& random, std::span<int8_t> out);

// Standard deviation of encryption errors.
inline constexpr double kErrorStandardDeviation = 3.19;
// Largest magnitude of an error. Beyond it (9.4 standard deviations) the untruncated distribution
// has a mass below 2^-70, less than the 63-bit table resolves.
inline constexpr int kErrorTailCut = 30;

// Cumulative distribution of the error's magnitude: entry k is floor(2^63 · Pr[|x| ≤ k]), where x
// is the discrete Gaussian of density proportional to exp(-x^2 / (2 · 3.19^2)) on [-30, 30].
extern const std::array<uint64_t, kErrorTailCut + 1> kErrorMagnitudeTable;

// Discrete Gaussian by inversion of the table above, in constant time: 63 bits choose the magnitude
// by comparing with every entry, one bit the sign. Statistical distance from the exact distribution
// is below 2^-60.
void SampleError(Random& random, std::span<int8_t> out);

// round(sigma · z), z standard normal (Box-Muller, 53-bit uniforms, |z| < 8.6): noise flooding.
// Requires 0 < sigma ≤ 2^58.
void SampleRoundedGaussian(Random& random, double sigma, std::span<int64_t> out);

}  // namespace cipherd::secret
