#include "core/secret/decryptor.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/ckks/context.h"
#include "core/ckks/host_ring.h"
#include "core/secret/host_operand.h"
#include "core/secret/samplers.h"
#include "core/secret/secret_buffer.h"

namespace cipherd::secret {
namespace {

// What the sampler's Gaussians stay below, in standard deviations.
constexpr double kLargestDeviation = 8.6;

// Doubles up to here stand for every integer, so that rounding leaves no bit of the error bare.
constexpr double kLogLargestNoise = 52;

// Over the 2^15 pairs of a ring of degree 2^16, tails of mass 2^-53 each add up to 2^-38.
constexpr int kMostStatisticalBits = 38;

}  // namespace

absl::Status FloodingOptions::Validate() const {
  if (!std::isfinite(error_bound) || error_bound <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("flooding.error_bound: expected a finite number above 0, got ", error_bound));
  }
  if (statistical_bits < 1 || statistical_bits > kMostStatisticalBits) {
    return absl::InvalidArgumentError(absl::StrCat("flooding.statistical_bits: expected 1 to ",
                                                   kMostStatisticalBits, ", got ",
                                                   statistical_bits));
  }
  if (result_count < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("flooding.result_count: expected at least 1, got ", result_count));
  }
  return absl::OkStatus();
}

double FloodingOptions::StandardDeviation(int64_t ring_degree) const {
  const double coordinates = static_cast<double>(result_count) * static_cast<double>(ring_degree);
  return std::ldexp(error_bound * std::sqrt(coordinates), statistical_bits - 1);
}

absl::StatusOr<ckks::Plaintext> Decryptor::Decrypt(const ckks::Ciphertext& ciphertext) const {
  const ckks::Context& context = *secret_key_.context();
  const ckks::ContextParameters& parameters = context.parameters();
  CIPHERD_RETURN_IF_ERROR(
      internal::CheckHostOperand(ciphertext.data, "ciphertext", 1, ciphertext.depth, parameters));
  const int components = ciphertext.component_count();
  if (components != 2 && components != 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("ciphertext.data: expected 2 or 3 components, got ", components));
  }
  ckks::Plaintext message{.data = {},
                          .depth = ciphertext.depth,
                          .scale = ciphertext.scale,
                          .domain = value::PolynomialDomain::kNtt};
  const std::vector<int64_t>& shape = ciphertext.data.shape();
  CIPHERD_ASSIGN_OR_RETURN(message.data, value::Tensor::AllocateHost(
                                             value::DType::kUint64,
                                             std::vector<int64_t>(shape.begin() + 1, shape.end())));
  const int64_t batch_count = ciphertext.batch_count();
  const std::vector<int64_t> prime_ids = parameters.ActivePrimeIds(ciphertext.depth, false);
  const internal::Limbs in(ciphertext.data);
  const internal::Limbs out(message.data);
  const size_t n = static_cast<size_t>(parameters.ring_degree());
  SecretBuffer<uint64_t> sum(n);
  std::vector<uint64_t> transformed(n);
  for (int64_t item = 0; item < batch_count; ++item) {
    for (size_t l = 0; l < prime_ids.size(); ++l) {
      const int64_t id = prime_ids[l];
      const auto component_limb = [&](int component) -> std::span<const uint64_t> {
        const std::span<uint64_t> limb = in(component * batch_count + item, l);
        if (ciphertext.domain == value::PolynomialDomain::kNtt) return limb;
        std::copy(limb.begin(), limb.end(), transformed.begin());
        ckks::ForwardNttOnHost(context, id, transformed);
        return transformed;
      };
      // Horner: ((c2 · s) + c1) · s + c0.
      const std::span<uint64_t> result = out(item, l);
      const std::span<const uint64_t> last = component_limb(components - 1);
      std::copy(last.begin(), last.end(), result.begin());
      for (int component = components - 2; component >= 0; --component) {
        const std::span<const uint64_t> limb = component_limb(component);
        std::copy(limb.begin(), limb.end(), sum.data());
        ckks::MultiplyAddOnHost(context, id, result, secret_key_.limb(id), sum.span());
        std::copy(sum.data(), sum.data() + n, result.begin());
      }
    }
  }
  return message;
}

absl::StatusOr<ckks::Plaintext> Decryptor::DecryptForSharing(const ckks::Ciphertext& ciphertext,
                                                             const FloodingOptions& flooding,
                                                             Random& random) const {
  const ckks::Context& context = *secret_key_.context();
  const ckks::ContextParameters& parameters = context.parameters();
  CIPHERD_RETURN_IF_ERROR(flooding.Validate());
  CIPHERD_ASSIGN_OR_RETURN(ckks::Plaintext message, Decrypt(ciphertext));
  const double sigma = flooding.StandardDeviation(parameters.ring_degree());
  const double log_largest = std::log2(kLargestDeviation * sigma);
  const double log_bound = std::min(kLogLargestNoise, parameters.log_q(message.depth) - 2);
  if (!(log_largest <= log_bound)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "flooding: expected noise of at most 2^", log_bound, " at depth ", message.depth,
        ", got 2^", log_largest, "; ask for fewer statistical_bits, or decrypt at a lower depth"));
  }
  const size_t n = static_cast<size_t>(parameters.ring_degree());
  const std::vector<int64_t> prime_ids = parameters.ActivePrimeIds(message.depth, false);
  const internal::Limbs out(message.data);
  SecretBuffer<int64_t> noise(n);
  SecretBuffer<uint64_t> limb(n);
  for (int64_t item = 0; item < message.batch_count(); ++item) {
    SampleRoundedGaussian(random, sigma, noise.span());
    for (size_t l = 0; l < prime_ids.size(); ++l) {
      ckks::LiftSignedOnHost(context, prime_ids[l], std::span<const int64_t>(noise.span()),
                             limb.span());
      ckks::ForwardNttOnHost(context, prime_ids[l], limb.span());
      ckks::AddOnHost(context, prime_ids[l], limb.span(), out(item, l));
    }
  }
  return message;
}

}  // namespace cipherd::secret
