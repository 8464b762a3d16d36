// Sends requests of a workload without waiting for them, and reports each as a sample.
//
//   RequestSender sender(workload, options, timers);
//   sender.Send(/*due=*/absl::Now(), [](const Sample& sample, absl::Duration retry_after) { ... });
//
// A share of the requests is cancelled under way. Thread-safe. Outlives its requests, as do the
// workload and the timers.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <random>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "client/load/load_options.h"
#include "client/load/sample.h"
#include "client/load/timer_queue.h"
#include "client/load/workload.h"

namespace cipherd::client {

class RequestSender {
 public:
  // `retry_after` is what a polite client waits after this end.
  using Done = std::function<void(const Sample& sample, absl::Duration retry_after)>;

  RequestSender(const Workload& workload, const LoadOptions& options, TimerQueue& timers);

  // `done` is called once, on any thread, maybe before this returns.
  void Send(absl::Time due, Done done) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Choice {
    const WorkItem* item;
    // Infinite for a request that is not cancelled.
    absl::Duration cancel_after;
  };
  Choice Choose() ABSL_LOCKS_EXCLUDED(mu_);
  Sample MakeSample(const WorkItem& item, absl::Time due, absl::Duration lag,
                    const absl::StatusOr<EvaluationResult>& result);

  const Workload& workload_;
  const LoadOptions options_;
  TimerQueue& timers_;
  // A running mean, for cancellations that come before and after the result alike.
  std::atomic<double> typical_seconds_{0.01};
  absl::Mutex mu_;
  std::mt19937_64 random_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cipherd::client
