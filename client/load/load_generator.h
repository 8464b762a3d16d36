// Keeps a load on a daemon until it is stopped.
//
//   std::unique_ptr<LoadGenerator> load = LoadGenerator::Start(workload, options, /*level=*/16);
//   ... absl::SleepFor(interval) ...
//   std::vector<Sample> samples = load->TakeSamples();
//   load->Stop();
//
// Few threads whatever the load: one that keeps the schedule, one for timers, and gRPC's. The
// workload outlives it. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "client/load/load_options.h"
#include "client/load/request_sender.h"
#include "client/load/sample.h"
#include "client/load/timer_queue.h"
#include "client/load/workload.h"

namespace cipherd::client {

class LoadGenerator {
 public:
  // `level`: clients of a closed loop, requests a second of an open one.
  static std::unique_ptr<LoadGenerator> Start(const Workload& workload, const LoadOptions& options,
                                              double level);
  // Stops.
  virtual ~LoadGenerator() = default;
  LoadGenerator(const LoadGenerator&) = delete;
  LoadGenerator& operator=(const LoadGenerator&) = delete;

  // Sends no more, and returns when every request has ended. Idempotent.
  virtual void Stop() = 0;

  // Of requests that have ended since the last time.
  std::vector<Sample> TakeSamples() ABSL_LOCKS_EXCLUDED(mu_);
  // Requests so far, and those of them that are under way.
  uint64_t sent_count() const ABSL_LOCKS_EXCLUDED(mu_);
  int in_flight() const ABSL_LOCKS_EXCLUDED(mu_);

 protected:
  LoadGenerator(const Workload& workload, const LoadOptions& options)
      : sender_(workload, options, timers_) {}

  // Sends one request. `next` runs when it has ended and was recorded, with what a polite client
  // waits; the request is under way until `next` returns.
  void Send(absl::Time due, std::function<void(absl::Duration retry_after)> next)
      ABSL_LOCKS_EXCLUDED(mu_);
  void AwaitIdle() ABSL_LOCKS_EXCLUDED(mu_);
  // Blocks until fewer than `limit` are under way, or `deadline`.
  bool AwaitRoom(int limit, absl::Time deadline) ABSL_LOCKS_EXCLUDED(mu_);
  TimerQueue& timers() { return timers_; }

 private:
  TimerQueue timers_;
  RequestSender sender_;
  mutable absl::Mutex mu_;
  std::vector<Sample> samples_ ABSL_GUARDED_BY(mu_);
  uint64_t sent_count_ ABSL_GUARDED_BY(mu_) = 0;
  int in_flight_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace cipherd::client
