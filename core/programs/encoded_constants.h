// The constants of a program, encoded and resident on a device. Internal to the interpreter.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "core/ckks/ciphertext.h"
#include "core/ckks/encoder.h"
#include "core/programs/program_checker.h"
#include "core/runtime/stream.h"

namespace cipherd::programs::internal {

struct EncodedConstants {
  // Of plain operations, by operation name.
  std::map<std::string, ckks::Plaintext, std::less<>> slots;
  // Of linear transforms: by operation name, then by offset; rotated by minus their giant step and
  // of the basis of their plan, as ckks::ApplyLinearTransform takes them.
  std::map<std::string, std::map<int64_t, ckks::Plaintext>, std::less<>> diagonals;
  int64_t bytes = 0;
};

// Encodes at the depth of the operation's operand and the scale that the checker inferred, and
// uploads over `stream`, one block an operation. Blocks until all is resident.
absl::StatusOr<EncodedConstants> EncodeConstants(const CheckedProgram& program,
                                                 const ckks::Encoder& encoder,
                                                 runtime::Stream& stream);

}  // namespace cipherd::programs::internal
