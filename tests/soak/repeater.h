// Runs a step again and again on a thread of its own until it is stopped or fails.
//
//   Repeater bad_requests("bad requests", absl::Milliseconds(50), [&] { return hostile.SendNext();
//   });
//
// Used by one thread.
#pragma once

#include <functional>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"

namespace cipherd::testing {

class Repeater {
 public:
  // With `pause` before each step.
  Repeater(std::string name, absl::Duration pause, std::function<absl::Status()> step);
  // Stops.
  ~Repeater() { Stop(); }
  Repeater(const Repeater&) = delete;
  Repeater& operator=(const Repeater&) = delete;

  // Prints how often the step ran, and expects it to have run and never to have failed. Idempotent.
  void Stop();

 private:
  const std::string name_;
  absl::Notification stop_;
  absl::Status status_;
  int count_ = 0;
  std::thread thread_;
};

}  // namespace cipherd::testing
