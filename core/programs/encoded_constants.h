// The constants of a program, encoded as its operations read them. Internal to the interpreter.
//
// They are resident on the device, or, where they are more than what they may take there, stay in
// pinned host memory and come to the device tile by tile (tiled_constants.h).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/ckks/ciphertext.h"
#include "core/ckks/encoder.h"
#include "core/programs/program_checker.h"
#include "core/runtime/stream.h"

namespace cipherd::programs::internal {

// Of one operation, by offset. A linear transform has its diagonals, rotated by minus their giant
// step and of the basis of its plan, as ckks::ApplyLinearTransform takes them; a plain operation
// has one plaintext, at 0.
using OperationConstants = std::map<int64_t, ckks::Plaintext>;

// Whether operations of the kind read one.
bool ReadsConstant(OperationKind kind);

// Bytes that EncodeOperation makes of the operation's constant.
int64_t EncodedBytes(const CheckedProgram& program, const Operation& operation);

// In pageable host memory, at the depth of the operation's operand and the scale that the checker
// inferred.
absl::StatusOr<OperationConstants> EncodeOperation(const CheckedProgram& program,
                                                   const Operation& operation,
                                                   const ckks::Encoder& encoder);

// Of one depth and scale, packed one after another, of equal sizes: `constants` with their data at
// `storage` + `byte_offset`, which holds the words in the order of offsets.
absl::StatusOr<OperationConstants> ViewsOf(const OperationConstants& constants,
                                           const runtime::StoragePtr& storage, int64_t byte_offset);

struct ResidentConstants {
  std::map<std::string, OperationConstants, std::less<>> by_operation;
  int64_t bytes = 0;
};

// Encodes and uploads over `stream`, one block an operation, so that the host holds one operation's
// at a time. Blocks until all is resident.
absl::StatusOr<ResidentConstants> UploadConstants(const CheckedProgram& program,
                                                  const ckks::Encoder& encoder,
                                                  runtime::Stream& stream);

}  // namespace cipherd::programs::internal
