// What it cost to build a program.
#pragma once

#include <cstddef>

namespace cipherd::execution {

// Durations are those the host observed. The memory fields are snapshots of the whole device's
// pool, taken when the capture had succeeded; they are not the graph's own footprint.
struct CaptureStats {
  int warmup_iterations = 0;
  double warmup_seconds = 0;
  double capture_seconds = 0;
  // Of the one replay, synchronised, that validates the graph.
  double first_replay_seconds = 0;
  size_t memory_allocated_bytes = 0;
  size_t memory_reserved_bytes = 0;
};

}  // namespace cipherd::execution
