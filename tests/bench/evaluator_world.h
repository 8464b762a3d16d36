// What evaluator_bench measures on: a secure context whose primes are all below 2^50, its keys on a
// device, and encrypted operands with known slots.
#pragma once

#include <complex>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/ckks/context.h"
#include "core/ckks/device_context.h"
#include "core/ckks/encoder.h"
#include "core/ckks/evaluator.h"
#include "core/ckks/key_set.h"
#include "core/ckks/linear_transform.h"
#include "core/runtime/device.h"
#include "core/secret/secret_key.h"

namespace cipherd::bench {

using Slots = std::vector<std::complex<double>>;

Slots Plus(const Slots& a, const Slots& b);
Slots Times(const Slots& a, const Slots& b);
// Slot j is slot (j + step) mod S of `slots`.
Slots Rotated(const Slots& slots, int64_t step);

class World {
 public:
  // log_n 13 to 16 (ckks::FmaContextRequest). Keys: relinearization, rotations by 1 to 8, and those
  // of RandomMatrix(64, 8) and RandomMatrix(64, 0).
  static absl::StatusOr<std::unique_ptr<World>> Make(const std::string& device_spec, int log_n);

  const ckks::ContextParameters& parameters() const { return context->parameters(); }

  // Items at depth 0 whose slots are SlotsOf(item, operand); unbatched for 1 item.
  absl::StatusOr<ckks::Ciphertext> Batch(int items, int operand);
  const Slots& SlotsOf(int item, int operand) const { return slots_[item % 2][operand]; }

  // The slots of one item.
  absl::StatusOr<Slots> Decrypt(const ckks::Ciphertext& ciphertext, int item);
  // Largest |actual - expected| over the largest |expected|.
  double RelativeDistance(const Slots& actual, const Slots& expected) const;

  // Transforms component 0 of `from` to component 0 of `to`.
  absl::Status ForwardNttOfFirstComponent(const ckks::Ciphertext& from, const ckks::Ciphertext& to);

  // Diagonals 0 to count - 1, encoded at depth 0; as in BsgsPlan, span 0 is chosen.
  struct Matrix {
    ckks::BsgsPlan plan;
    std::map<int64_t, ckks::Plaintext> diagonals;
    std::map<int64_t, Slots> slots;
  };
  absl::StatusOr<Matrix> RandomMatrix(int64_t count, int64_t baby_span);

  // In the order of construction.
  std::unique_ptr<runtime::Device> device;
  std::unique_ptr<runtime::Stream> stream;
  std::shared_ptr<runtime::Event> begin;
  std::shared_ptr<runtime::Event> end;
  std::shared_ptr<const ckks::Context> context;
  std::unique_ptr<ckks::DeviceContext> device_context;
  std::unique_ptr<ckks::Encoder> encoder;
  std::unique_ptr<ckks::Evaluator> evaluator;
  std::unique_ptr<secret::SecretKey> secret_key;
  ckks::KeySet keys;  // on the device
  ckks::KeyTable table;

 private:
  absl::Status MakeKeys();
  absl::Status MakeOperands();
  absl::StatusOr<value::Tensor> ToDevice(const value::Tensor& host);
  Slots RandomSlots(uint64_t seed) const;

  // By item parity and operand.
  Slots slots_[2][2];
  ckks::Ciphertext encrypted_[2][2];
};

}  // namespace cipherd::bench
