#include "tests/ckks/ckks_fixture.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/base/status_macros.h"
#include "core/secret/decryptor.h"
#include "core/secret/encryptor.h"
#include "core/secret/key_generator.h"
#include "tests/testing/devices.h"

namespace cipherd::testing {

using ckks::Ciphertext;
using ckks::ContextParameters;
using ckks::Plaintext;
using value::Tensor;

ContextParameters SmallParameters(int log_n) {
  ckks::ContextRequest request;
  request.log_n = log_n;
  request.base_prime_bits = 50;
  request.depth_prime_bits = 40;
  request.max_depth = 3;
  request.p_prime_bits = 55;
  request.p_prime_count = 2;
  request.digit_count = 2;
  return ckks::MakeContextParameters(request, ckks::SecurityPolicy::kAllowInsecure).value();
}

ContextParameters FmaParameters(int log_n, int p_count) {
  ckks::ContextRequest request;
  request.log_n = log_n;
  request.base_prime_bits = 50;
  request.depth_prime_bits = 40;
  request.max_depth = 3;
  request.p_prime_bits = 50;
  request.p_prime_count = p_count;
  request.digit_count = 2;
  return ckks::MakeContextParameters(request, ckks::SecurityPolicy::kAllowInsecure).value();
}

ContextParameters WithDigits(ContextParameters parameters,
                             std::vector<std::vector<int32_t>> digits) {
  parameters.digits = std::move(digits);
  return parameters;
}

absl::StatusOr<std::unique_ptr<Party>> Party::Make(std::string_view device_param,
                                                   ContextParameters parameters,
                                                   std::vector<ckks::KeyId> key_ids, uint64_t seed,
                                                   const ckks::KernelChoice& kernels) {
  auto party = std::make_unique<Party>();
  runtime::DeviceOptions options = SmallPools();
  options.device_memory.slab_bytes = size_t{16} << 20;
  CIPHERD_ASSIGN_OR_RETURN(party->device, OpenTestDevice(device_param, options));
  CIPHERD_ASSIGN_OR_RETURN(party->stream, party->device->CreateStream("compute"));
  CIPHERD_ASSIGN_OR_RETURN(
      party->context,
      ckks::Context::Create(std::move(parameters), ckks::SecurityPolicy::kAllowInsecure));
  CIPHERD_ASSIGN_OR_RETURN(
      party->device_context,
      ckks::DeviceContext::Create(party->context, *party->device, *party->stream, kernels));
  party->encoder = std::make_unique<ckks::Encoder>(party->context);
  party->evaluator = std::make_unique<ckks::Evaluator>(*party->device_context);
  party->random = std::make_unique<secret::Random>(secret::Random::FromSeedForTesting(seed));
  party->secret_key = std::make_unique<secret::SecretKey>(
      secret::SecretKey::Generate(party->context, *party->random));
  party->noise = std::make_unique<NoiseModel>(party->parameters());

  const ckks::KeyLayout layout(std::move(key_ids));
  const secret::KeyGenerator generator(*party->secret_key);
  CIPHERD_ASSIGN_OR_RETURN(const ckks::KeySet host_keys,
                           generator.GenerateKeySet(layout, *party->random, nullptr));
  for (const auto& [id, key] : host_keys) {
    CIPHERD_ASSIGN_OR_RETURN(ckks::EvaluationKey resident, UploadKey(key, *party->stream));
    party->keys.emplace(id, std::move(resident));
  }
  CIPHERD_ASSIGN_OR_RETURN(party->table, MakeKeyTable(layout, party->keys, *party->stream));
  return party;
}

Slots Party::RandomSlots() {
  Slots slots(static_cast<size_t>(slot_count()));
  for (std::complex<double>& slot : slots) {
    const double real = 2 * random->NextUnitDouble() - 1;
    slot = {real, 2 * random->NextUnitDouble() - 1};
  }
  return slots;
}

absl::StatusOr<Tensor> Party::ToDevice(const Tensor& host) {
  CIPHERD_ASSIGN_OR_RETURN(Tensor copy, Tensor::AllocateOn(*stream, host.dtype(), host.shape()));
  CIPHERD_RETURN_IF_ERROR(
      stream->CopyAsync(copy.data(), host.data(), static_cast<size_t>(host.bytes())));
  CIPHERD_RETURN_IF_ERROR(stream->Synchronize());
  return copy;
}

absl::StatusOr<Tensor> Party::ToHost(const Tensor& device_data) {
  CIPHERD_ASSIGN_OR_RETURN(Tensor copy,
                           Tensor::AllocateHost(device_data.dtype(), device_data.shape()));
  CIPHERD_RETURN_IF_ERROR(
      stream->CopyAsync(copy.data(), device_data.data(), static_cast<size_t>(copy.bytes())));
  CIPHERD_RETURN_IF_ERROR(stream->Synchronize());
  return copy;
}

absl::StatusOr<std::vector<uint64_t>> Party::Words(const Tensor& data) {
  CIPHERD_ASSIGN_OR_RETURN(const Tensor host, ToHost(data));
  const uint64_t* words = host.data_as<uint64_t>();
  return std::vector<uint64_t>(words, words + host.element_count());
}

absl::StatusOr<Ciphertext> Party::Stack(const std::vector<Ciphertext>& items) {
  const int64_t count = static_cast<int64_t>(items.size());
  Ciphertext batch = items.front();
  std::vector<int64_t> shape = batch.data.shape();
  const int64_t polynomial_bytes = batch.data.bytes() / shape[0];
  shape.insert(shape.begin() + 1, count);
  CIPHERD_ASSIGN_OR_RETURN(Tensor host,
                           Tensor::AllocateHost(value::DType::kUint64, std::move(shape)));
  for (int64_t i = 0; i < count; ++i) {
    CIPHERD_ASSIGN_OR_RETURN(const Tensor item, ToHost(items[i].data));
    for (int64_t c = 0; c < batch.component_count(); ++c) {
      std::memcpy(host.data_as<uint8_t>() + (c * count + i) * polynomial_bytes,
                  item.data_as<uint8_t>() + c * polynomial_bytes,
                  static_cast<size_t>(polynomial_bytes));
    }
  }
  CIPHERD_ASSIGN_OR_RETURN(batch.data, ToDevice(host));
  return batch;
}

absl::StatusOr<Ciphertext> Party::Item(const Ciphertext& batch, int64_t i) {
  CIPHERD_ASSIGN_OR_RETURN(const Tensor host, ToHost(batch.data));
  const int64_t count = batch.batch_count();
  const int64_t polynomial_bytes = host.bytes() / (batch.component_count() * count);
  Ciphertext item = batch;
  std::vector<int64_t> shape = host.shape();
  shape.erase(shape.begin() + 1);
  CIPHERD_ASSIGN_OR_RETURN(Tensor out,
                           Tensor::AllocateHost(value::DType::kUint64, std::move(shape)));
  for (int64_t c = 0; c < batch.component_count(); ++c) {
    std::memcpy(out.data_as<uint8_t>() + c * polynomial_bytes,
                host.data_as<uint8_t>() + (c * count + i) * polynomial_bytes,
                static_cast<size_t>(polynomial_bytes));
  }
  CIPHERD_ASSIGN_OR_RETURN(item.data, ToDevice(out));
  return item;
}

namespace {

// Host tensors [limb, N] stacked to [items, limb, N].
absl::StatusOr<Tensor> StackOnHost(const std::vector<Plaintext>& items) {
  std::vector<int64_t> shape = items.front().data.shape();
  shape.insert(shape.begin(), static_cast<int64_t>(items.size()));
  CIPHERD_ASSIGN_OR_RETURN(Tensor stacked,
                           Tensor::AllocateHost(value::DType::kUint64, std::move(shape)));
  uint8_t* out = stacked.data_as<uint8_t>();
  for (const Plaintext& item : items) {
    std::memcpy(out, item.data.data(), static_cast<size_t>(item.data.bytes()));
    out += item.data.bytes();
  }
  return stacked;
}

absl::StatusOr<Plaintext> EncodeOnHost(const ckks::Encoder& encoder,
                                       const std::vector<Slots>& items, int depth, double scale,
                                       value::ModulusBasis basis = value::ModulusBasis::kQ) {
  std::vector<Plaintext> encoded;
  for (const Slots& slots : items) {
    CIPHERD_ASSIGN_OR_RETURN(Plaintext item, encoder.EncodeComplex(slots, depth, scale, basis));
    encoded.push_back(std::move(item));
  }
  Plaintext batch = encoded.front();
  CIPHERD_ASSIGN_OR_RETURN(batch.data, StackOnHost(encoded));
  return batch;
}

}  // namespace

absl::StatusOr<Plaintext> Party::Encode(const Slots& slots, int depth, double scale,
                                        value::ModulusBasis basis) {
  CIPHERD_ASSIGN_OR_RETURN(Plaintext plain, encoder->EncodeComplex(slots, depth, scale, basis));
  CIPHERD_ASSIGN_OR_RETURN(plain.data, ToDevice(plain.data));
  return plain;
}

absl::StatusOr<Plaintext> Party::EncodeBatch(const std::vector<Slots>& items, int depth,
                                             double scale, value::ModulusBasis basis) {
  CIPHERD_ASSIGN_OR_RETURN(Plaintext plain, EncodeOnHost(*encoder, items, depth, scale, basis));
  CIPHERD_ASSIGN_OR_RETURN(plain.data, ToDevice(plain.data));
  return plain;
}

absl::StatusOr<Ciphertext> Party::Encrypt(const Slots& slots, int depth) {
  CIPHERD_ASSIGN_OR_RETURN(const Plaintext plain, encoder->EncodeComplex(slots, depth, scale()));
  CIPHERD_ASSIGN_OR_RETURN(secret::SeededCiphertext seeded,
                           secret::SymmetricEncryptor(*secret_key).Encrypt(plain, *random));
  CIPHERD_ASSIGN_OR_RETURN(seeded.ciphertext.data, ToDevice(seeded.ciphertext.data));
  return seeded.ciphertext;
}

absl::StatusOr<Ciphertext> Party::EncryptBatch(const std::vector<Slots>& items, int depth) {
  CIPHERD_ASSIGN_OR_RETURN(const Plaintext plain, EncodeOnHost(*encoder, items, depth, scale()));
  CIPHERD_ASSIGN_OR_RETURN(secret::SeededCiphertext seeded,
                           secret::SymmetricEncryptor(*secret_key).Encrypt(plain, *random));
  CIPHERD_ASSIGN_OR_RETURN(seeded.ciphertext.data, ToDevice(seeded.ciphertext.data));
  return seeded.ciphertext;
}

absl::StatusOr<std::vector<Slots>> Party::DecryptBatch(const Ciphertext& ciphertext) {
  Ciphertext host = ciphertext;
  CIPHERD_ASSIGN_OR_RETURN(host.data, ToHost(ciphertext.data));
  CIPHERD_ASSIGN_OR_RETURN(const Plaintext plain, secret::Decryptor(*secret_key).Decrypt(host));
  const std::vector<int64_t>& shape = plain.data.shape();
  const std::vector<int64_t> item_shape(shape.end() - 2, shape.end());
  const int64_t item_bytes = item_shape[0] * item_shape[1] * static_cast<int64_t>(sizeof(uint64_t));
  std::vector<Slots> items;
  for (int64_t i = 0; i < plain.batch_count(); ++i) {
    Plaintext item = plain;
    CIPHERD_ASSIGN_OR_RETURN(item.data, Tensor::FromStorage(plain.data.storage(), i * item_bytes,
                                                            value::DType::kUint64, item_shape));
    CIPHERD_ASSIGN_OR_RETURN(Slots slots, encoder->Decode(item));
    items.push_back(std::move(slots));
  }
  return items;
}

absl::StatusOr<Slots> Party::Decrypt(const Ciphertext& ciphertext) {
  CIPHERD_ASSIGN_OR_RETURN(std::vector<Slots> items, DecryptBatch(ciphertext));
  return std::move(items.front());
}

double MaxDistance(const Slots& actual, const Slots& expected) {
  if (actual.size() != expected.size()) return INFINITY;
  double largest = 0;
  for (size_t j = 0; j < actual.size(); ++j) {
    const double distance = std::abs(actual[j] - expected[j]);
    if (!(distance <= largest)) largest = distance;  // a NaN wins
    if (std::isnan(largest)) return INFINITY;
  }
  return largest;
}

Slots Rotated(const Slots& slots, int64_t step) {
  const int64_t count = static_cast<int64_t>(slots.size());
  Slots out(slots.size());
  for (int64_t j = 0; j < count; ++j) out[j] = slots[(((j + step) % count) + count) % count];
  return out;
}

}  // namespace cipherd::testing
