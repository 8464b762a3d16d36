// The operations of a program over numbered edges, and when each edge dies. Internal to the
// interpreter.
#pragma once

#include <vector>

#include "core/programs/program_spec.h"

namespace cipherd::programs::internal {

struct ScheduledOperation {
  const Operation* operation;
  int a;
  int b;  // -1 where there is none
  int result;
  // Edges that nothing reads after this operation, and that are no outputs.
  std::vector<int> last_reads;
};

struct Schedule {
  // Inputs are edges 0, 1, … in their order.
  int edge_count = 0;
  std::vector<ScheduledOperation> operations;
  // Edge of each output.
  std::vector<int> outputs;
};

// `spec` is that of a checked program; the schedule points into it.
Schedule MakeSchedule(const ProgramSpec& spec);

}  // namespace cipherd::programs::internal
