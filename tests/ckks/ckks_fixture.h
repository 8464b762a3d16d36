// A CKKS context on one device together with the secret key of its owner: what the tests of
// evaluation work with.
//
//   ASSERT_OK_AND_ASSIGN(auto party, Party::Make("cpu", parameters, {KeyId::Relinearization()}));
//   const Slots x = party->RandomSlots();
//   ASSERT_OK_AND_ASSIGN(Ciphertext a, party->Encrypt(x, /*depth=*/0));
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/ckks/context.h"
#include "core/ckks/device_context.h"
#include "core/ckks/encoder.h"
#include "core/ckks/evaluator.h"
#include "core/ckks/key_set.h"
#include "core/runtime/device.h"
#include "core/secret/random.h"
#include "core/secret/secret_key.h"
#include "tests/ckks/noise_model.h"

namespace cipherd::testing {

using Slots = std::vector<std::complex<double>>;

// Parameters of tests: four Q primes (three depths) of 40 bits over one of 50, two P primes of 55,
// two digits. Insecure below log_n 14.
ckks::ContextParameters SmallParameters(int log_n = 10);

// The same shape with primes below 2^50 alone, of which some are above 2^48, and `p_count` P
// primes.
ckks::ContextParameters FmaParameters(int log_n, int p_count = 2);

// `parameters` with another partition into digits.
ckks::ContextParameters WithDigits(ckks::ContextParameters parameters,
                                   std::vector<std::vector<int32_t>> digits);

class Party {
 public:
  // Everything from `seed`: two parties of one seed have the same keys and encrypt alike on every
  // device.
  static absl::StatusOr<std::unique_ptr<Party>> Make(std::string_view device_param,
                                                     ckks::ContextParameters parameters,
                                                     std::vector<ckks::KeyId> keys,
                                                     uint64_t seed = 1,
                                                     const ckks::KernelChoice& kernels = {});

  const ckks::ContextParameters& parameters() const { return context->parameters(); }
  int64_t slot_count() const { return parameters().slot_count(); }
  double scale() const { return parameters().default_scale; }

  // Slots with real and imaginary part uniform in [-1, 1): magnitude below sqrt(2).
  Slots RandomSlots();
  // Symmetric encryption, uploaded; several slot vectors become a batch [items].
  absl::StatusOr<ckks::Ciphertext> Encrypt(const Slots& slots, int depth);
  absl::StatusOr<ckks::Ciphertext> EncryptBatch(const std::vector<Slots>& items, int depth);
  // Encoded and uploaded.
  absl::StatusOr<ckks::Plaintext> Encode(const Slots& slots, int depth, double scale,
                                         value::ModulusBasis basis = value::ModulusBasis::kQ);
  absl::StatusOr<ckks::Plaintext> EncodeBatch(const std::vector<Slots>& items, int depth,
                                              double scale,
                                              value::ModulusBasis basis = value::ModulusBasis::kQ);
  // Downloaded, decrypted, decoded: one slot vector for each item.
  absl::StatusOr<std::vector<Slots>> DecryptBatch(const ckks::Ciphertext& ciphertext);
  absl::StatusOr<Slots> Decrypt(const ckks::Ciphertext& ciphertext);
  // Unbatched ciphertexts of one state as one batch [items].
  absl::StatusOr<ckks::Ciphertext> Stack(const std::vector<ckks::Ciphertext>& items);
  // Item i of a ciphertext with one batch axis.
  absl::StatusOr<ckks::Ciphertext> Item(const ckks::Ciphertext& batch, int64_t i);
  // The words of a device tensor, after everything enqueued so far.
  absl::StatusOr<std::vector<uint64_t>> Words(const value::Tensor& data);

  absl::StatusOr<value::Tensor> ToDevice(const value::Tensor& host);
  absl::StatusOr<value::Tensor> ToHost(const value::Tensor& device_data);

  // In the order of construction.
  std::unique_ptr<runtime::Device> device;
  std::unique_ptr<runtime::Stream> stream;
  std::shared_ptr<const ckks::Context> context;
  std::unique_ptr<ckks::DeviceContext> device_context;
  std::unique_ptr<ckks::Encoder> encoder;
  std::unique_ptr<ckks::Evaluator> evaluator;
  std::unique_ptr<secret::SecretKey> secret_key;
  std::unique_ptr<secret::Random> random;
  std::unique_ptr<NoiseModel> noise;
  ckks::KeySet keys;  // on the device
  ckks::KeyTable table;
};

// Largest |actual - expected|.
double MaxDistance(const Slots& actual, const Slots& expected);

// Slot j is slot (j + step) mod S of `slots`.
Slots Rotated(const Slots& slots, int64_t step);

// f applied slot by slot.
template <typename F>
Slots Map(const Slots& a, F f) {
  Slots out(a.size());
  for (size_t j = 0; j < a.size(); ++j) out[j] = f(a[j]);
  return out;
}
template <typename F>
Slots Map(const Slots& a, const Slots& b, F f) {
  Slots out(a.size());
  for (size_t j = 0; j < a.size(); ++j) out[j] = f(a[j], b[j]);
  return out;
}

}  // namespace cipherd::testing
