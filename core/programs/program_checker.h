// Infers the state of every edge of a program before anything is captured, and refuses what cannot
// run.
//
//   CIPHERD_ASSIGN_OR_RETURN(auto program, CheckProgram(spec, constants, policy));
//   program->keys.ids()              // what a client must upload
//   program->edges.at("logits")      // depth, scale, component count
//
// A mismatch names the operation, both states and what mends it:
//   program 'fashion_mlp', operation 'z2': add needs equal scales, got 'h' 2^45 at depth 1 and 'b'
//   2^90 at depth 1; rescale 'b' first
//
// The rules of operations are in operation_rules.h.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/ckks/context.h"
#include "core/ckks/evaluation_keys.h"
#include "core/ckks/linear_transform.h"
#include "core/programs/constants.h"
#include "core/programs/edge_state.h"
#include "core/programs/program_spec.h"

namespace cipherd::programs {

// A program that can run. Immutable, shared by all instances.
struct CheckedProgram {
  ProgramSpec spec;
  std::shared_ptr<const ckks::Context> context;
  std::shared_ptr<const Constants> constants;
  // Inputs and operations by name.
  std::map<std::string, EdgeState, std::less<>> edges;
  // Exactly the keys that the operations read.
  ckks::KeyLayout keys;
  // Of every linear transform, by operation name.
  std::map<std::string, ckks::BsgsPlan, std::less<>> plans;
  // The scale that each plain operation and linear transform encodes its constant at, by operation
  // name.
  std::map<std::string, double, std::less<>> constant_scales;

  // Payload bytes of the inputs and of the outputs of one evaluation, and of a key set.
  int64_t input_bytes() const;
  int64_t output_bytes() const;
  int64_t key_bytes() const;
  // Of all constants, encoded as operations read them, and the most that one operation reads: half
  // of the least memory that they can be streamed through (InterpreterOptions).
  int64_t constant_bytes() const;
  int64_t largest_constant_bytes() const;
};

// InvalidArgument as above; also for: bad or duplicate names, operands that are not made before,
// constants that are missing, of a wrong dtype or shape, or too large to encode; layouts that leave
// the slots or overlap; depths and scales out of range; outputs that are inputs, of three
// components or beyond the modulus; no inputs, operations or outputs; edges that nothing reads.
// Context errors are ContextParameters::Validate's.
absl::StatusOr<std::shared_ptr<const CheckedProgram>> CheckProgram(ProgramSpec spec,
                                                                   Constants constants,
                                                                   ckks::SecurityPolicy policy);

}  // namespace cipherd::programs
