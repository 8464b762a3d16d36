// Options of capture and replay (cuda_graph_program.h).
#pragma once

#include <optional>
#include <string>

#include "core/base/clock.h"
#include "core/execution/copy_handle.h"
#include "core/execution/event_list.h"

namespace cipherd::execution {

struct CaptureOptions {
  // Uncaptured runs before the capture, each over a fresh buffer; at least 0.
  int warmup = 3;
  // Refuse a replay that would read or write storage which has been freed since the capture.
  bool check_input_liveness = true;
  // The function's name in errors and profiles.
  std::string function_name = "function";
  // After these the example inputs are complete.
  EventList wait_for = {};
  // Measures CaptureStats.
  const base::Clock* clock = &base::Clock::Real();
};

struct ReplayOptions {
  // Return storage of the caller's own, allocated on the replay's stream.
  bool copy_output = false;
  // Block until the replay, and the clone of its output, are complete.
  bool synchronize = false;
  // The replay starts after these, for instance after a copy of the borrowed output on another
  // stream.
  EventList wait_for = {};
};

struct PreparedReplayOptions {
  // The handle of the latest CopyInputsFrom. Required while that copy has not been replayed,
  // refused afterwards; absent, the payload is replayed again.
  std::optional<CopyHandle> copy_handle = std::nullopt;
  // As in ReplayOptions.
  bool copy_output = false;
  bool synchronize = false;
  EventList wait_for = {};
};

}  // namespace cipherd::execution
