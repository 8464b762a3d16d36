#include "tests/bench/evaluator_world.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <random>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/secret/decryptor.h"
#include "core/secret/encryptor.h"
#include "core/secret/key_generator.h"
#include "core/secret/random.h"

namespace cipherd::bench {
namespace {

// 0 to count - 1.
std::vector<int64_t> FirstOffsets(int64_t count) {
  std::vector<int64_t> offsets(count);
  std::iota(offsets.begin(), offsets.end(), 0);
  return offsets;
}

using ckks::Ciphertext;
using ckks::KeyId;
using ckks::Plaintext;
using value::Tensor;

// Runs task(0) to task(count - 1) on all processors, and returns the first error.
absl::Status ForEachInParallel(size_t count, const std::function<absl::Status(size_t)>& task) {
  const size_t workers = std::max(1u, std::thread::hardware_concurrency());
  std::vector<absl::Status> statuses(workers);
  std::vector<std::thread> threads;
  for (size_t w = 0; w < workers; ++w) {
    threads.emplace_back([&, w] {
      for (size_t i = w; i < count && statuses[w].ok(); i += workers) statuses[w] = task(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) CIPHERD_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

absl::StatusOr<ckks::ContextParameters> ParametersOf(int log_n) {
  CIPHERD_ASSIGN_OR_RETURN(const ckks::ContextRequest request, ckks::FmaContextRequest(log_n));
  return ckks::MakeContextParameters(request, ckks::SecurityPolicy::k128BitClassical);
}

}  // namespace

Slots Plus(const Slots& a, const Slots& b) {
  Slots sum(a.size());
  for (size_t j = 0; j < a.size(); ++j) sum[j] = a[j] + b[j];
  return sum;
}

Slots Times(const Slots& a, const Slots& b) {
  Slots product(a.size());
  for (size_t j = 0; j < a.size(); ++j) product[j] = a[j] * b[j];
  return product;
}

Slots Rotated(const Slots& slots, int64_t step) {
  const auto count = static_cast<int64_t>(slots.size());
  Slots out(slots.size());
  for (int64_t j = 0; j < count; ++j) out[j] = slots[(((j + step) % count) + count) % count];
  return out;
}

absl::StatusOr<std::unique_ptr<World>> World::Make(const std::string& device_spec, int log_n) {
  auto world = std::make_unique<World>();
  CIPHERD_ASSIGN_OR_RETURN(world->device, runtime::OpenDevice(device_spec, {}));
  CIPHERD_ASSIGN_OR_RETURN(world->stream, world->device->CreateStream("bench"));
  CIPHERD_ASSIGN_OR_RETURN(world->begin, world->device->CreateEvent());
  CIPHERD_ASSIGN_OR_RETURN(world->end, world->device->CreateEvent());
  CIPHERD_ASSIGN_OR_RETURN(ckks::ContextParameters parameters, ParametersOf(log_n));
  CIPHERD_ASSIGN_OR_RETURN(
      world->context,
      ckks::Context::Create(std::move(parameters), ckks::SecurityPolicy::k128BitClassical));
  CIPHERD_ASSIGN_OR_RETURN(
      world->device_context,
      ckks::DeviceContext::Create(world->context, *world->device, *world->stream));
  world->encoder = std::make_unique<ckks::Encoder>(world->context);
  world->evaluator = std::make_unique<ckks::Evaluator>(*world->device_context);
  secret::Random random = secret::Random::FromSeedForTesting(1);
  world->secret_key =
      std::make_unique<secret::SecretKey>(secret::SecretKey::Generate(world->context, random));
  CIPHERD_RETURN_IF_ERROR(world->MakeKeys());
  CIPHERD_RETURN_IF_ERROR(world->MakeOperands());
  return world;
}

absl::Status World::MakeKeys() {
  std::vector<KeyId> ids = {KeyId::Relinearization()};
  const int64_t slot_count = parameters().slot_count();
  for (int64_t step = 1; step <= 8; ++step) ids.push_back(KeyId::Rotation(step, slot_count));
  for (int64_t span : {0, 8}) {
    CIPHERD_ASSIGN_OR_RETURN(const ckks::BsgsPlan plan,
                             ckks::BsgsPlan::Make(FirstOffsets(64), slot_count, span));
    for (const KeyId& id : plan.Keys()) ids.push_back(id);
  }
  ids = ckks::KeyLayout(std::move(ids)).ids();
  const secret::KeyGenerator generator(*secret_key);
  std::vector<ckks::EvaluationKey> host_keys(ids.size());
  CIPHERD_RETURN_IF_ERROR(ForEachInParallel(ids.size(), [&](size_t i) -> absl::Status {
    secret::Random random = secret::Random::FromSeedForTesting(100 + i);
    CIPHERD_ASSIGN_OR_RETURN(secret::GeneratedKey generated, generator.GenerateKey(ids[i], random));
    host_keys[i] = std::move(generated.key);
    return absl::OkStatus();
  }));
  for (const ckks::EvaluationKey& key : host_keys) {
    CIPHERD_ASSIGN_OR_RETURN(ckks::EvaluationKey resident, UploadKey(key, *stream));
    keys.emplace(key.id, std::move(resident));
  }
  CIPHERD_ASSIGN_OR_RETURN(table, MakeKeyTable(ckks::KeyLayout(ids), keys, *stream));
  return absl::OkStatus();
}

absl::Status World::MakeOperands() {
  for (int parity = 0; parity < 2; ++parity) {
    for (int operand = 0; operand < 2; ++operand) {
      slots_[parity][operand] = RandomSlots(2 * parity + operand);
      CIPHERD_ASSIGN_OR_RETURN(
          const Plaintext plain,
          encoder->EncodeComplex(slots_[parity][operand], /*depth=*/0, parameters().default_scale));
      secret::Random random = secret::Random::FromSeedForTesting(10 + 2 * parity + operand);
      CIPHERD_ASSIGN_OR_RETURN(secret::SeededCiphertext seeded,
                               secret::SymmetricEncryptor(*secret_key).Encrypt(plain, random));
      encrypted_[parity][operand] = seeded.ciphertext;
      CIPHERD_ASSIGN_OR_RETURN(encrypted_[parity][operand].data, ToDevice(seeded.ciphertext.data));
    }
  }
  return absl::OkStatus();
}

Slots World::RandomSlots(uint64_t seed) const {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  Slots slots(static_cast<size_t>(parameters().slot_count()));
  for (std::complex<double>& slot : slots) {
    const double real = uniform(random);
    slot = {real, uniform(random)};
  }
  return slots;
}

absl::StatusOr<Tensor> World::ToDevice(const Tensor& host) {
  CIPHERD_ASSIGN_OR_RETURN(Tensor copy, Tensor::AllocateOn(*stream, host.dtype(), host.shape()));
  CIPHERD_RETURN_IF_ERROR(
      stream->CopyAsync(copy.data(), host.data(), static_cast<size_t>(host.bytes())));
  CIPHERD_RETURN_IF_ERROR(stream->Synchronize());
  return copy;
}

absl::StatusOr<Ciphertext> World::Batch(int items, int operand) {
  Ciphertext batch = encrypted_[0][operand];
  if (items == 1) return batch;
  std::vector<int64_t> shape = batch.data.shape();
  const auto bytes = static_cast<size_t>(batch.data.bytes() / shape[0]);
  const int64_t components = shape[0];
  shape.insert(shape.begin() + 1, items);
  CIPHERD_ASSIGN_OR_RETURN(batch.data,
                           Tensor::AllocateOn(*stream, value::DType::kUint64, std::move(shape)));
  for (int64_t c = 0; c < components; ++c) {
    for (int64_t i = 0; i < items; ++i) {
      CIPHERD_RETURN_IF_ERROR(
          stream->CopyAsync(batch.data.data_as<uint8_t>() + (c * items + i) * bytes,
                            encrypted_[i % 2][operand].data.data_as<uint8_t>() + c * bytes, bytes));
    }
  }
  CIPHERD_RETURN_IF_ERROR(stream->Synchronize());
  return batch;
}

absl::StatusOr<Slots> World::Decrypt(const Ciphertext& ciphertext, int item) {
  const int64_t components = ciphertext.component_count();
  const int64_t items = ciphertext.batch_count();
  const std::vector<int64_t>& shape = ciphertext.data.shape();
  const auto bytes = static_cast<size_t>(ciphertext.data.bytes() / (components * items));
  Ciphertext host = ciphertext;
  CIPHERD_ASSIGN_OR_RETURN(
      host.data, Tensor::AllocateHost(value::DType::kUint64,
                                      {components, shape[shape.size() - 2], shape.back()}));
  for (int64_t c = 0; c < components; ++c) {
    CIPHERD_RETURN_IF_ERROR(
        stream->CopyAsync(host.data.data_as<uint8_t>() + c * bytes,
                          ciphertext.data.data_as<uint8_t>() + (c * items + item) * bytes, bytes));
  }
  CIPHERD_RETURN_IF_ERROR(stream->Synchronize());
  CIPHERD_ASSIGN_OR_RETURN(const Plaintext plain, secret::Decryptor(*secret_key).Decrypt(host));
  return encoder->Decode(plain);
}

double World::RelativeDistance(const Slots& actual, const Slots& expected) const {
  double distance = 0;
  double magnitude = 0;
  for (size_t j = 0; j < expected.size(); ++j) {
    distance = std::max(distance, std::abs(actual[j] - expected[j]));
    magnitude = std::max(magnitude, std::abs(expected[j]));
    if (std::isnan(std::abs(actual[j]))) return INFINITY;
  }
  return actual.size() == expected.size() ? distance / magnitude : INFINITY;
}

absl::Status World::ForwardNttOfFirstComponent(const Ciphertext& from, const Ciphertext& to) {
  const auto first = [](const Ciphertext& c) {
    const std::vector<int64_t>& shape = c.data.shape();
    return kernels::PolyView{c.data.data_as<uint64_t>(), c.batch_count(),
                             shape[shape.size() - 2] * shape.back()};
  };
  return device_context->kernels().forward_ntt(
      device_context->ring(), device_context->q_limbs(from.depth), first(from), first(to), *stream);
}

absl::StatusOr<World::Matrix> World::RandomMatrix(int64_t count, int64_t baby_span) {
  const std::vector<int64_t> offsets = FirstOffsets(count);
  Matrix matrix;
  CIPHERD_ASSIGN_OR_RETURN(matrix.plan,
                           ckks::BsgsPlan::Make(offsets, parameters().slot_count(), baby_span));
  for (int64_t t : offsets) matrix.slots[t] = RandomSlots(1000 + t);
  std::vector<Plaintext> encoded(count);
  CIPHERD_RETURN_IF_ERROR(
      ForEachInParallel(static_cast<size_t>(count), [&](size_t t) -> absl::Status {
        const auto offset = static_cast<int64_t>(t);
        const int64_t giant = offset - offset % matrix.plan.baby_span();
        CIPHERD_ASSIGN_OR_RETURN(
            encoded[t],
            encoder->EncodeComplex(Rotated(matrix.slots.at(offset), -giant), 0,
                                   parameters().default_scale, matrix.plan.diagonal_basis()));
        return absl::OkStatus();
      }));
  for (int64_t t : offsets) {
    CIPHERD_ASSIGN_OR_RETURN(encoded[t].data, ToDevice(encoded[t].data));
    matrix.diagonals.emplace(t, encoded[t]);
  }
  return matrix;
}

}  // namespace cipherd::bench
