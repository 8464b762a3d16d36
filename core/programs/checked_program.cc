// CheckedProgram: sizes that follow from the states of edges.
#include <algorithm>

#include "core/ckks/key_set.h"
#include "core/programs/encoded_constants.h"
#include "core/programs/program_checker.h"

namespace cipherd::programs {
namespace {

int64_t CiphertextBytes(const ckks::ContextParameters& parameters, const EdgeState& state) {
  return state.component_count * parameters.active_q_count(state.depth) * parameters.ring_degree() *
         int64_t{sizeof(uint64_t)};
}

}  // namespace

int64_t CheckedProgram::input_bytes() const {
  int64_t bytes = 0;
  for (const ProgramInput& input : spec.inputs) {
    bytes += CiphertextBytes(spec.context, edges.find(input.name)->second);
  }
  return bytes;
}

int64_t CheckedProgram::output_bytes() const {
  int64_t bytes = 0;
  for (const ProgramOutput& output : spec.outputs) {
    bytes += CiphertextBytes(spec.context, edges.find(output.edge)->second);
  }
  return bytes;
}

int64_t CheckedProgram::key_bytes() const {
  return keys.size() * ckks::EvaluationKeyBytes(spec.context);
}

int64_t CheckedProgram::constant_bytes() const {
  int64_t bytes = 0;
  for (const Operation& operation : spec.operations) {
    if (internal::ReadsConstant(operation.kind)) bytes += internal::EncodedBytes(*this, operation);
  }
  return bytes;
}

int64_t CheckedProgram::largest_constant_bytes() const {
  int64_t largest = 0;
  for (const Operation& operation : spec.operations) {
    if (!internal::ReadsConstant(operation.kind)) continue;
    largest = std::max(largest, internal::EncodedBytes(*this, operation));
  }
  return largest;
}

}  // namespace cipherd::programs
