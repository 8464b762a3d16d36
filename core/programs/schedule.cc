#include "core/programs/schedule.h"

#include <map>
#include <set>
#include <string_view>

namespace cipherd::programs::internal {

Schedule MakeSchedule(const ProgramSpec& spec) {
  Schedule schedule;
  std::map<std::string_view, int> edges;
  for (const ProgramInput& input : spec.inputs) edges[input.name] = schedule.edge_count++;
  for (const Operation& operation : spec.operations) {
    const std::vector<std::string_view> operands = OperandsOf(operation);
    const int a = edges.at(operands[0]);
    const int b = operands.size() == 2 ? edges.at(operands[1]) : -1;
    const int result = schedule.edge_count++;
    edges[operation.name] = result;
    schedule.operations.push_back({&operation, a, b, result, {}});
  }

  // Backwards: the first time that an edge is met is its last read. Outputs never die.
  std::set<int> met;
  for (const ProgramOutput& output : spec.outputs) {
    schedule.outputs.push_back(edges.at(output.edge));
    met.insert(schedule.outputs.back());
  }
  for (auto step = schedule.operations.rbegin(); step != schedule.operations.rend(); ++step) {
    for (const int edge : {step->a, step->b}) {
      if (edge >= 0 && met.insert(edge).second) step->last_reads.push_back(edge);
    }
  }
  return schedule;
}

}  // namespace cipherd::programs::internal
