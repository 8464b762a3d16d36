// Runs a checked program: an ordinary callable over exact values, which CudaGraphProgram::Capture
// takes like any other.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/ckks/device_context.h"
#include "core/programs/program_checker.h"
#include "core/runtime/stream.h"
#include "core/value/value_tree.h"

namespace cipherd::programs {

// A program bound to a device: constants encoded and resident, schedule fixed. Immutable and
// thread-safe; every instance of the program on that device shares one.
class Interpreter {
 public:
  // Encodes the constants at their depths and scales and uploads them on `stream`; blocks until
  // they are resident. `device_context` must be of the program's context, and outlive this.
  static absl::StatusOr<std::shared_ptr<const Interpreter>> Make(
      std::shared_ptr<const CheckedProgram> program, const ckks::DeviceContext& device_context,
      runtime::Stream& stream);
  ~Interpreter();

  const CheckedProgram& program() const;

  // Bytes of encoded constants on the device.
  int64_t constant_bytes() const;

  // Evaluates on `stream`. `inputs` is one Ciphertext value an input, in the order of the spec,
  // then a uint64 tensor [max(1, key count)] of device addresses of keys in the order of
  // program().keys. Returns a tuple with one Ciphertext an output. Frees each edge after its last
  // reader.
  absl::StatusOr<value::ValueTree> operator()(std::span<const value::ValueTree> inputs,
                                              runtime::Stream& stream) const;

  // Example inputs on the device: zero ciphertexts of the right states and a key table of zeros...
  // the table must be bound to readable keys before a replay, so `key_addresses` (one per key,
  // device memory) are written to it.
  absl::StatusOr<std::vector<value::ValueTree>> ExampleInputs(
      std::span<const uint64_t> key_addresses, runtime::Stream& stream) const;

 private:
  struct State;
  explicit Interpreter(std::unique_ptr<const State> state);
  std::unique_ptr<const State> state_;
};

}  // namespace cipherd::programs
