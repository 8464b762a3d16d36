#include "core/secret/key_generator.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/ckks/context.h"
#include "core/ckks/host_ring.h"
#include "core/ring/rns_basis.h"
#include "core/secret/samplers.h"
#include "core/secret/secret_buffer.h"

namespace cipherd::secret {
namespace {

using ckks::Context;
using ckks::ContextParameters;
using value::Tensor;
using value::ValueType;

ckks::Seed NewSeed(Random& random) {
  ckks::Seed seed;
  random.Fill(seed);
  return seed;
}

// The N words of one limb of a contiguous tensor whose last axes are [limb, N].
std::span<uint64_t> LimbOf(const Tensor& data, int64_t index, size_t n) {
  return {data.data_as<uint64_t>() + index * static_cast<int64_t>(n), n};
}

// One pair (b, a) = (-a · s + e, a) of limbs; `error` are the coefficients of e.
void FillPair(const SecretKey& secret_key, const ckks::Seed& seed, uint32_t polynomial,
              int64_t prime_id, std::span<const int8_t> error, std::span<uint64_t> b,
              std::span<uint64_t> a) {
  const Context& context = *secret_key.context();
  ckks::ExpandSeededUniform(seed, polynomial, static_cast<uint32_t>(prime_id),
                            context.prime(prime_id), a);
  ckks::LiftSignedOnHost(context, prime_id, error, b);
  ckks::ForwardNttOnHost(context, prime_id, b);
  ckks::MultiplySubtractOnHost(context, prime_id, a, secret_key.limb(prime_id), b);
}

// s(X^galois_element).
SecretBuffer<int8_t> Automorphism(std::span<const int8_t> coefficients, uint32_t galois_element) {
  const size_t n = coefficients.size();
  SecretBuffer<int8_t> image(n);
  for (size_t i = 0; i < n; ++i) {
    const size_t exponent = (i * galois_element) & (2 * n - 1);
    // X^N = -1.
    if (exponent < n) {
      image[exponent] = coefficients[i];
    } else {
      image[exponent - n] = static_cast<int8_t>(-coefficients[i]);
    }
  }
  return image;
}

// The limbs [|Q|, N] of s': what an evaluation key leads from.
SecretBuffer<uint64_t> SourceSecret(const SecretKey& secret_key, const ckks::KeyId& id) {
  const Context& context = *secret_key.context();
  const ContextParameters& parameters = context.parameters();
  const size_t n = static_cast<size_t>(parameters.ring_degree());
  SecretBuffer<uint64_t> limbs(n * static_cast<size_t>(parameters.q_count()));
  SecretBuffer<int8_t> image;
  if (id.type != ValueType::kRelinearizationKey) {
    image =
        Automorphism(secret_key.coefficients(), id.type == ValueType::kConjugationKey
                                                    ? parameters.ConjugationElement()
                                                    : parameters.RotationElement(id.rotation_step));
  }
  for (int q = 0; q < parameters.q_count(); ++q) {
    const std::span<uint64_t> limb = limbs.span().subspan(static_cast<size_t>(q) * n, n);
    if (id.type == ValueType::kRelinearizationKey) {
      ckks::MultiplyAddOnHost(context, q, secret_key.limb(q), secret_key.limb(q), limb);
    } else {
      ckks::LiftSignedOnHost(context, q, image.span(), limb);
      ckks::ForwardNttOnHost(context, q, limb);
    }
  }
  return limbs;
}

absl::Status CheckId(const ckks::KeyId& id, int64_t slot_count) {
  const bool is_rotation = id.type == ValueType::kRotationKey;
  if (!is_rotation && id.type != ValueType::kRelinearizationKey &&
      id.type != ValueType::kConjugationKey) {
    return absl::InvalidArgumentError(absl::StrCat(
        "key: expected a relinearization, rotation or conjugation key, got ", id.ToString()));
  }
  const int64_t least = is_rotation ? 1 : 0;
  const int64_t most = is_rotation ? slot_count - 1 : 0;
  if (id.rotation_step < least || id.rotation_step > most) {
    return absl::InvalidArgumentError(absl::StrCat("key: rotation_step: expected ", least, " to ",
                                                   most, ", got ", id.rotation_step));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PublicKey> KeyGenerator::GeneratePublicKey(Random& random) const {
  const ContextParameters& parameters = secret_key_.context()->parameters();
  const size_t n = static_cast<size_t>(parameters.ring_degree());
  PublicKey key;
  CIPHERD_ASSIGN_OR_RETURN(
      key.data, Tensor::AllocateHost(value::DType::kUint64,
                                     {2, parameters.q_count(), parameters.ring_degree()}));
  key.seed = NewSeed(random);
  SecretBuffer<int8_t> error(n);
  SampleError(random, error.span());
  for (int q = 0; q < parameters.q_count(); ++q) {
    FillPair(secret_key_, key.seed, /*polynomial=*/0, q, error.span(), LimbOf(key.data, q, n),
             LimbOf(key.data, parameters.q_count() + q, n));
  }
  return key;
}

absl::StatusOr<GeneratedKey> KeyGenerator::GenerateKey(const ckks::KeyId& id,
                                                       Random& random) const {
  const Context& context = *secret_key_.context();
  const ContextParameters& parameters = context.parameters();
  CIPHERD_RETURN_IF_ERROR(CheckId(id, parameters.slot_count()));
  const size_t n = static_cast<size_t>(parameters.ring_degree());
  const int64_t limb_count = parameters.q_count() + parameters.p_count();
  const int64_t digit_count = static_cast<int64_t>(parameters.digits.size());

  GeneratedKey generated;
  generated.key.id = id;
  CIPHERD_ASSIGN_OR_RETURN(generated.key.data,
                           Tensor::AllocateHost(value::DType::kUint64, {digit_count, 2, limb_count,
                                                                        parameters.ring_degree()}));
  generated.seed = NewSeed(random);

  std::vector<uint16_t> p_rows;
  for (int p = 0; p < parameters.p_count(); ++p) {
    p_rows.push_back(static_cast<uint16_t>(parameters.q_count() + p));
  }
  const SecretBuffer<uint64_t> source = SourceSecret(secret_key_, id);
  SecretBuffer<int8_t> error(n);
  std::vector<uint64_t> p_product(n);
  for (int64_t d = 0; d < digit_count; ++d) {
    SampleError(random, error.span());
    for (int64_t limb = 0; limb < limb_count; ++limb) {
      FillPair(secret_key_, generated.seed, static_cast<uint32_t>(d), limb, error.span(),
               LimbOf(generated.key.data, (2 * d) * limb_count + limb, n),
               LimbOf(generated.key.data, (2 * d + 1) * limb_count + limb, n));
    }
    // P · F_d · s' is zero but modulo the primes of the digit.
    for (int32_t q : parameters.digits[d]) {
      std::fill(p_product.begin(), p_product.end(), context.basis().ProductMod(p_rows, q));
      ckks::MultiplyAddOnHost(context, q, p_product,
                              source.span().subspan(static_cast<size_t>(q) * n, n),
                              LimbOf(generated.key.data, (2 * d) * limb_count + q, n));
    }
  }
  return generated;
}

absl::Status KeyGenerator::GenerateKeys(const ckks::KeyLayout& layout, Random& random,
                                        const Sink& sink) const {
  int done = 0;
  for (const ckks::KeyId& id : layout.ids()) {
    CIPHERD_ASSIGN_OR_RETURN(GeneratedKey generated, GenerateKey(id, random));
    CIPHERD_RETURN_IF_ERROR(sink(std::move(generated), ++done, layout.size()));
  }
  return absl::OkStatus();
}

absl::StatusOr<ckks::KeySet> KeyGenerator::GenerateKeySet(const ckks::KeyLayout& layout,
                                                          Random& random,
                                                          const Progress& progress) const {
  ckks::KeySet keys;
  CIPHERD_RETURN_IF_ERROR(
      GenerateKeys(layout, random, [&](GeneratedKey generated, int done, int total) {
        keys.emplace(generated.key.id, std::move(generated.key));
        if (progress) progress(done, total);
        return absl::OkStatus();
      }));
  return keys;
}

}  // namespace cipherd::secret
