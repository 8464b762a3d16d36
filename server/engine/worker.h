// One worker: three streams of a device, the instances on it, and the thread that submits to them.
//
//   device thread      takes a request, pins its keys and enqueues all of its work at once
//                      (device_submission.h), without blocking
//   completion thread  is told by the output stream; gives instance and keys back and continues the
//                      request
//
// So the copies of one request lie under the compute of another, no thread waits for a request, and
// only the device thread submits. An instance is lent until its output has been copied: that is
// what keeps the next replay from overwriting a borrowed output.
//
// A failure of the device is final for its workers: each takes no more, waits until its streams are
// quiet, ends what was in flight with UNAVAILABLE, and reports itself once. Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "core/base/clock.h"
#include "core/runtime/device.h"
#include "server/engine/device_submission.h"
#include "server/engine/key_residency.h"
#include "server/engine/program_pool.h"
#include "server/engine/request.h"
#include "server/engine/scheduler.h"

namespace cipherd::engine {

class Worker {
 public:
  // All of it outlives the worker.
  struct Environment {
    runtime::Device& device;
    Scheduler& scheduler;
    KeyResidency& keys;
    const base::Clock& clock;
    // Called on the completion thread, after what was in flight has been ended.
    std::function<void(const absl::Status& cause)> on_fault;
    // How long a failure of the device may stay unseen while requests are in flight.
    absl::Duration fault_poll_interval = absl::Milliseconds(50);
  };

  // Creates the streams and starts both threads. `name` appears in logs and stream names.
  static absl::StatusOr<std::unique_ptr<Worker>> Create(std::string name, Environment environment);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // From now on requests of `program` may run here. It outlives the worker.
  void AddProgram(const ServedProgram& program, std::unique_ptr<ProgramPool> pool)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Takes no more, completes what is in flight, joins the threads and closes the pools.
  // FailedPrecondition where a lease of an instance has leaked. Idempotent.
  absl::Status Stop() ABSL_LOCKS_EXCLUDED(mu_);

  struct InstanceCounts {
    size_t total = 0;
    size_t leased = 0;
  };
  InstanceCounts instance_counts(const ServedProgram& program) const ABSL_LOCKS_EXCLUDED(mu_);
  const std::string& name() const { return name_; }
  bool is_healthy() const { return !is_faulted_.load(); }

 private:
  using Submissions = std::list<DeviceSubmission>;

  Worker(std::string name, Environment environment, WorkerStreams streams);

  void RunDeviceThread();
  void Submit(DeviceSubmission submission) ABSL_LOCKS_EXCLUDED(mu_);
  ProgramPool* FindPool(const ServedProgram& program) const ABSL_LOCKS_EXCLUDED(mu_);

  void RunCompletionThread();
  // Waits for completed submissions and moves them out. Cancelled once there will be no more, the
  // fault once there is one.
  absl::Status AwaitCompleted(Submissions& completed) ABSL_LOCKS_EXCLUDED(mu_);
  void Complete(DeviceSubmission& submission);
  void ReportFault(const absl::Status& cause) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndAfterFault(const absl::Status& cause) ABSL_LOCKS_EXCLUDED(mu_);

  const std::string name_;
  const Environment environment_;
  WorkerStreams streams_;

  // Ends the device thread.
  std::atomic<bool> quit_ = false;
  std::atomic<bool> is_faulted_ = false;

  mutable absl::Mutex mu_;
  absl::CondVar changed_;
  std::map<const ServedProgram*, std::unique_ptr<ProgramPool>> pools_ ABSL_GUARDED_BY(mu_);
  // On the streams, and those that the streams are done with.
  Submissions in_flight_ ABSL_GUARDED_BY(mu_);
  Submissions completed_ ABSL_GUARDED_BY(mu_);
  bool device_thread_ended_ ABSL_GUARDED_BY(mu_) = false;
  // The first failure seen.
  absl::Status fault_ ABSL_GUARDED_BY(mu_);

  std::thread device_thread_;
  std::thread completion_thread_;
};

}  // namespace cipherd::engine
