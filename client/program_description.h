// A program as its users see it: what it takes, what it returns, and the keys that it needs.
//
// Made from a daemon's answer, which is checked, since keys and ciphertexts are made after it: the
// context must be valid and secure, its id must be its own hash, inputs and outputs must fit it.
// Immutable; shared by threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cipherd/v1/evaluation.pb.h"
#include "core/ckks/context.h"
#include "core/ckks/evaluation_keys.h"
#include "core/execution/value_tree_signature.h"
#include "core/programs/program_spec.h"
#include "proto/codec/known_context.h"

namespace cipherd::client {

struct ProgramDescription {
  std::string name;
  uint32_t version = 0;
  // What was asked for: `version`, and evaluations go to exactly that one; or 0, and they go to the
  // newest that is ready.
  uint32_t requested_version = 0;
  std::string description;

  std::shared_ptr<const ckks::Context> context;
  codec::KnownContextPtr known_context;
  std::vector<programs::ProgramInput> inputs;
  std::vector<programs::ProgramOutput> outputs;
  execution::ValueTreeSignature input_signature;
  execution::ValueTreeSignature output_signature;
  // Exactly the keys that the program reads.
  ckks::KeyLayout required_keys;
  // Payload bytes of a key set, and of the inputs and outputs of one evaluation.
  uint64_t key_bytes = 0;
  uint64_t input_bytes = 0;
  uint64_t output_bytes = 0;

  // InvalidArgument naming the field; `policy` says whether a context below 128-bit security is
  // taken.
  static absl::StatusOr<std::shared_ptr<const ProgramDescription>> FromMessage(
      const v1::GetProgramResponse& message, ckks::SecurityPolicy policy,
      uint32_t requested_version = 0);
};

using ProgramPtr = std::shared_ptr<const ProgramDescription>;

}  // namespace cipherd::client
