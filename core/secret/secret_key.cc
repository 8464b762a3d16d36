#include "core/secret/secret_key.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/ckks/host_ring.h"
#include "core/secret/samplers.h"

namespace cipherd::secret {

SecretKey SecretKey::Generate(std::shared_ptr<const ckks::Context> context, Random& random) {
  SecretBuffer<int8_t> coefficients(static_cast<size_t>(context->parameters().ring_degree()));
  SampleUniformTernary(random, coefficients.span());
  return SecretKey(std::move(context), std::move(coefficients));
}

absl::StatusOr<SecretKey> SecretKey::FromCoefficients(std::shared_ptr<const ckks::Context> context,
                                                      std::span<const int8_t> coefficients) {
  const int64_t n = context->parameters().ring_degree();
  if (static_cast<int64_t>(coefficients.size()) != n) {
    return absl::InvalidArgumentError(
        absl::StrCat("secret key: expected ", n, " coefficients, got ", coefficients.size()));
  }
  // Says neither which coefficient nor what it is.
  if (!std::all_of(coefficients.begin(), coefficients.end(),
                   [](int8_t c) { return c >= -1 && c <= 1; })) {
    return absl::InvalidArgumentError("secret key: expected coefficients in {-1, 0, 1}");
  }
  SecretBuffer<int8_t> copy(coefficients.size());
  std::copy(coefficients.begin(), coefficients.end(), copy.data());
  return SecretKey(std::move(context), std::move(copy));
}

SecretKey::SecretKey(std::shared_ptr<const ckks::Context> context,
                     SecretBuffer<int8_t> coefficients)
    : context_(std::move(context)),
      coefficients_(std::move(coefficients)),
      limbs_(coefficients_.size() * static_cast<size_t>(context_->ring().prime_count)) {
  const size_t n = coefficients_.size();
  for (int id = 0; id < context_->ring().prime_count; ++id) {
    const std::span<uint64_t> limb = limbs_.span().subspan(static_cast<size_t>(id) * n, n);
    ckks::LiftSignedOnHost(*context_, id, coefficients_.span(), limb);
    ckks::ForwardNttOnHost(*context_, id, limb);
  }
}

std::span<const uint64_t> SecretKey::limb(int64_t prime_id) const {
  const size_t n = coefficients_.size();
  return limbs_.span().subspan(static_cast<size_t>(prime_id) * n, n);
}

}  // namespace cipherd::secret
