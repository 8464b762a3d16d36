#include "core/secret/encryptor.h"

#include <array>
#include <utility>
#include <vector>

#include "core/base/status_macros.h"
#include "core/ckks/host_ring.h"
#include "core/secret/host_operand.h"
#include "core/secret/samplers.h"
#include "core/secret/secret_buffer.h"

namespace cipherd::secret {
namespace {

using ckks::Ciphertext;
using ckks::Context;
using ckks::Plaintext;
using internal::Limbs;

absl::Status CheckMessage(const Plaintext& message, const ckks::ContextParameters& parameters) {
  CIPHERD_RETURN_IF_ERROR(
      internal::CheckHostOperand(message.data, "message", 0, message.depth, parameters));
  if (message.domain != value::PolynomialDomain::kNtt) {
    return absl::InvalidArgumentError(
        "message.domain: expected ntt, got coefficient; encode it in the NTT domain (Encoder)");
  }
  return absl::OkStatus();
}

// An uninitialised ciphertext of the state of `message`.
absl::StatusOr<Ciphertext> NewCiphertext(const Plaintext& message) {
  Ciphertext ciphertext{.data = {},
                        .depth = message.depth,
                        .scale = message.scale,
                        .domain = value::PolynomialDomain::kNtt};
  std::vector<int64_t> shape = {2};
  shape.insert(shape.end(), message.data.shape().begin(), message.data.shape().end());
  CIPHERD_ASSIGN_OR_RETURN(ciphertext.data,
                           value::Tensor::AllocateHost(value::DType::kUint64, std::move(shape)));
  return ciphertext;
}

// out = NTT of small secret coefficients.
void LiftToNtt(const Context& context, int64_t prime_id, std::span<const int8_t> coefficients,
               std::span<uint64_t> out) {
  ckks::LiftSignedOnHost(context, prime_id, coefficients, out);
  ckks::ForwardNttOnHost(context, prime_id, out);
}

}  // namespace

PublicKeyEncryptor::PublicKeyEncryptor(std::shared_ptr<const Context> context, PublicKey public_key)
    : context_(std::move(context)), public_key_(std::move(public_key)) {}

absl::StatusOr<Ciphertext> PublicKeyEncryptor::Encrypt(const Plaintext& message,
                                                       Random& random) const {
  const ckks::ContextParameters& parameters = context_->parameters();
  CIPHERD_RETURN_IF_ERROR(CheckMessage(message, parameters));
  CIPHERD_ASSIGN_OR_RETURN(Ciphertext ciphertext, NewCiphertext(message));
  const size_t n = static_cast<size_t>(parameters.ring_degree());
  const int64_t batch_count = message.batch_count();
  const std::vector<int64_t> prime_ids = parameters.ActivePrimeIds(message.depth, false);
  const Limbs out(ciphertext.data);
  const Limbs in(message.data);
  const Limbs key(public_key_.data);
  SecretBuffer<int8_t> ephemeral(n);
  std::array<SecretBuffer<int8_t>, 2> errors = {SecretBuffer<int8_t>(n), SecretBuffer<int8_t>(n)};
  SecretBuffer<uint64_t> ephemeral_limb(n);
  for (int64_t item = 0; item < batch_count; ++item) {
    SampleUniformTernary(random, ephemeral.span());
    for (SecretBuffer<int8_t>& error : errors) SampleError(random, error.span());
    for (size_t l = 0; l < prime_ids.size(); ++l) {
      const int64_t id = prime_ids[l];
      LiftToNtt(*context_, id, ephemeral.span(), ephemeral_limb.span());
      for (int64_t component = 0; component < 2; ++component) {
        const std::span<uint64_t> limb = out(component * batch_count + item, l);
        LiftToNtt(*context_, id, errors[component].span(), limb);
        ckks::MultiplyAddOnHost(*context_, id, key(component, id), ephemeral_limb.span(), limb);
      }
      ckks::AddOnHost(*context_, id, in(item, l), out(item, l));
    }
  }
  return ciphertext;
}

absl::StatusOr<SeededCiphertext> SymmetricEncryptor::Encrypt(const Plaintext& message,
                                                             Random& random) const {
  const Context& context = *secret_key_.context();
  const ckks::ContextParameters& parameters = context.parameters();
  CIPHERD_RETURN_IF_ERROR(CheckMessage(message, parameters));
  SeededCiphertext seeded;
  CIPHERD_ASSIGN_OR_RETURN(seeded.ciphertext, NewCiphertext(message));
  random.Fill(seeded.seed);
  const int64_t batch_count = message.batch_count();
  const std::vector<int64_t> prime_ids = parameters.ActivePrimeIds(message.depth, false);
  const Limbs out(seeded.ciphertext.data);
  const Limbs in(message.data);
  SecretBuffer<int8_t> error(static_cast<size_t>(parameters.ring_degree()));
  for (int64_t item = 0; item < batch_count; ++item) {
    SampleError(random, error.span());
    for (size_t l = 0; l < prime_ids.size(); ++l) {
      const int64_t id = prime_ids[l];
      const std::span<uint64_t> c0 = out(item, l);
      const std::span<uint64_t> c1 = out(batch_count + item, l);
      ckks::ExpandSeededUniform(seeded.seed, static_cast<uint32_t>(item), static_cast<uint32_t>(id),
                                context.prime(id), c1);
      LiftToNtt(context, id, error.span(), c0);
      ckks::MultiplySubtractOnHost(context, id, c1, secret_key_.limb(id), c0);
      ckks::AddOnHost(context, id, in(item, l), c0);
    }
  }
  return seeded;
}

}  // namespace cipherd::secret
