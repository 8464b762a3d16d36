// Infers the state of every edge of a program before anything is captured, and refuses what cannot run.
//
// A mismatch names the operation, both states and the operation that mends it:
//   program 'fashion_mlp', operation 'z2': add needs equal scales, got 'h' 2^45 at depth 1 and 'b' 2^90 at depth 1;
//   rescale 'b' first
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/ckks/context.h"
#include "core/ckks/evaluation_keys.h"
#include "core/ckks/linear_transform.h"
#include "core/programs/constants.h"
#include "core/programs/program_spec.h"

namespace cipherd::programs {

// What is known of one edge. Every edge is a ciphertext in the NTT domain.
struct EdgeState {
  int depth = 0;
  double scale = 0;
  int component_count = 2;
};

// A program that can run. Immutable, shared by all instances.
struct CheckedProgram {
  ProgramSpec spec;
  std::shared_ptr<const ckks::Context> context;
  std::shared_ptr<const Constants> constants;
  std::map<std::string, EdgeState> edges;  // inputs and operations by name
  // Exactly the keys that the operations read.
  ckks::KeyLayout keys;
  // Of every linear transform, by operation name.
  std::map<std::string, ckks::BsgsPlan> plans;
  // Scale that each plain operation and linear transform encodes its constant at, by operation name.
  std::map<std::string, double> constant_scales;

  // Payload bytes of one evaluation's inputs and outputs and of a key set.
  int64_t input_bytes() const;
  int64_t output_bytes() const;
  int64_t key_bytes() const;
};

// InvalidArgument as above; also for: bad or duplicate names, unknown operands or constants, constants of a wrong dtype
// or shape, layouts that leave the slots or overlap, depth beyond the context, outputs that wrap around the
// modulus, missing inputs or outputs, edges that nothing reads.
absl::StatusOr<std::shared_ptr<const CheckedProgram>> CheckProgram(ProgramSpec spec, Constants constants,
                                                                   ckks::SecurityPolicy policy);

}  // namespace cipherd::programs
