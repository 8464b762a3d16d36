// What each kind of operation asks of its operands, and what state it gives its result: one rule a
// kind, in a table. Internal to the checker.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/ckks/context_parameters.h"
#include "core/ckks/evaluation_keys.h"
#include "core/ckks/linear_transform.h"
#include "core/programs/constants.h"
#include "core/programs/edge_state.h"
#include "core/programs/program_spec.h"

namespace cipherd::programs::internal {

// What rules read, and what they infer besides the states of edges.
struct Inference {
  Inference(const ckks::ContextParameters& parameters, const Constants& constants)
      : parameters(parameters), constants(constants) {}

  const ckks::ContextParameters& parameters;
  const Constants& constants;
  // Inputs and the operations so far.
  std::map<std::string, EdgeState, std::less<>> edges;
  // Keys that are read, in any order, with duplicates.
  std::vector<ckks::KeyId> keys;
  std::map<std::string, ckks::BsgsPlan, std::less<>> plans;
  std::map<std::string, double, std::less<>> constant_scales;
};

// The state of the result of `operation`; its operands must be in `inference.edges`. Adds keys,
// plan and constant scale to `inference`. InvalidArgument saying what is off and what mends it.
absl::StatusOr<EdgeState> ApplyRule(const Operation& operation, Inference& inference);

}  // namespace cipherd::programs::internal
