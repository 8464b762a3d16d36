// What each operation of a program takes on a device, measured one by one.
//
//   CIPHERD_ASSIGN_OR_RETURN(OperationCosts costs, MeasureOperations(program, device));
//   costs.total_seconds()   // a replay of the program, predicted
//
// Operations that do the same work (a kind at a depth; a transform of as many steps and diagonals)
// are measured once: captured kOperationCopies times in a row, and replayed. So the measurement is
// much shorter than loading the program, and needs no constants, keys or ciphertexts but zeros.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/programs/program_checker.h"
#include "core/runtime/device.h"

namespace cipherd::planning {

inline constexpr int kOperationCopies = 4;

struct OperationCosts {
  // By the position of the operation in the program.
  std::vector<double> seconds;

  double total_seconds() const;
};

struct CostOptions {
  // Replays that are timed of each distinct operation, whose median counts.
  int repetitions = 7;
};

// Blocks. Device memory is given back. ResourceExhausted where it runs out; otherwise errors of the
// device.
absl::StatusOr<OperationCosts> MeasureOperations(
    const std::shared_ptr<const programs::CheckedProgram>& program, runtime::Device& device,
    const CostOptions& options = {});

}  // namespace cipherd::planning
