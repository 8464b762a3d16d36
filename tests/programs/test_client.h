// The secret side of a test: one tenant's secret key, its evaluation keys on the device, encryption
// to the device and decryption from it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/ckks/encoder.h"
#include "core/ckks/key_set.h"
#include "core/programs/program_checker.h"
#include "core/runtime/stream.h"
#include "core/secret/random.h"
#include "core/secret/secret_key.h"
#include "core/value/value_tree.h"
#include "tests/programs/plain_interpreter.h"

namespace cipherd::programs {

// Keys of `program` made from `seed`, resident on the device of a stream that outlives this.
class TestClient {
 public:
  static absl::StatusOr<std::unique_ptr<TestClient>> Make(
      std::shared_ptr<const CheckedProgram> program, uint64_t seed, runtime::Stream& stream);

  // Inputs of one evaluation on the device: a ciphertext an input, then the key table of this
  // client. `slots` by input name.
  absl::StatusOr<std::vector<value::ValueTree>> Encrypt(
      const std::map<std::string, ComplexSlots>& slots);

  // Slots by output name.
  absl::StatusOr<std::map<std::string, ComplexSlots>> Decrypt(const value::ValueTree& outputs);

 private:
  TestClient(std::shared_ptr<const CheckedProgram> program, uint64_t seed, runtime::Stream& stream);

  const std::shared_ptr<const CheckedProgram> program_;
  runtime::Stream& stream_;
  const ckks::Encoder encoder_;
  secret::Random random_;
  const secret::SecretKey secret_key_;
  ckks::KeySet keys_;
};

}  // namespace cipherd::programs
