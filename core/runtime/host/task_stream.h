// What the streams of every host-side device (threads, puppet) offer beyond Stream: running a
// closure. Kernels for the host are enqueued through it.
#pragma once

#include <functional>
#include <string_view>

#include "absl/status/status.h"
#include "core/runtime/stream.h"

namespace cipherd::runtime::host {

// A stream whose work is closures run by the host. While it captures, the closure becomes a node of
// the graph and runs once at every replay, so it must not own what it changes.
class TaskStream : public Stream {
 public:
  // Enqueues `task`. `name` must outlive the stream's work (a string literal); it appears in
  // errors. A task that returns an error fails the stream, which sticks.
  virtual absl::Status Submit(std::string_view name, std::function<absl::Status()> task) = 0;
};

}  // namespace cipherd::runtime::host
