// Refuses circuits that mean nothing, before anything is planned or evaluated.
//
//   CIPHERD_RETURN_IF_ERROR(CheckCircuit(circuit));
//
// A message names the operation, what it has, what it should have and what mends it:
//   circuit 'scores', operation 'h': constant 'h.values': expected a length that is a power of two
//   and at most 16, got 10; fill up with zeros to 16
#pragma once

#include "absl/status/status.h"
#include "core/planning/circuit.h"

namespace cipherd::planning {

// InvalidArgument as above, for: a position_count that is no power of two; bad or duplicate names;
// operands that are not made before; constants that are missing, of a wrong dtype, shape or length,
// or not finite; offsets out of [0, position_count) or given twice; inputs and outputs that leave
// the positions; magnitude bounds that are not finite and positive; outputs that are inputs, or of
// one edge; no inputs, operations or outputs; edges that nothing reads.
absl::Status CheckCircuit(const Circuit& circuit);

}  // namespace cipherd::planning
