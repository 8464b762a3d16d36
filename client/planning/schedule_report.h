// A program for people: what it needs, and each operation with its state and its time.
#pragma once

#include <optional>
#include <string>

#include "core/planning/operation_costs.h"
#include "core/programs/program_checker.h"

namespace cipherd::client {

// "errors up to 2.1e-05 (root mean square 3e-06) over 1280 measured numbers".
std::string FormatErrors(const programs::MeasuredErrors& errors);

// A table: context, items, keys, bytes, constants, predicted time of an evaluation.
std::string FormatSummary(const programs::CheckedProgram& program,
                          const std::optional<planning::OperationCosts>& costs);

// A table with a row an operation: what it reads, depth, scale, limbs, components, rotations, and
// where there are costs, microseconds and their share.
std::string FormatSchedule(const programs::CheckedProgram& program,
                           const std::optional<planning::OperationCosts>& costs);

// The schedule in the language of Graphviz: a node an operation, coloured by depth, with its state;
// edges downwards. `dot -Tsvg` draws it.
std::string ScheduleGraph(const programs::CheckedProgram& program,
                          const std::optional<planning::OperationCosts>& costs);

}  // namespace cipherd::client
