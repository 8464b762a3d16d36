// One worker: three streams of a device, the instances on it, and the thread that submits to them.
//
//   device thread      takes a batch, pins its keys and enqueues all of its work at once
//                      (device_submission.h), without blocking
//   completion thread  learns of early outputs and tells the requests that asked for them; learns
//                      of each batch's end in the order of submission, gives instance and keys back
//                      and continues the requests
//
// So the copies of one batch lie under the compute of another, no thread waits for a request, and
// only the device thread submits. An instance is lent until its output has been copied: that is
// what keeps the next replay from overwriting a borrowed output.
//
// Faults. After a failure the worker takes no more, waits until its streams are quiet, ends what
// was in flight with UNAVAILABLE and says so. Then its completion thread, which has nothing else to
// do, makes new streams, captures and verifies every instance anew, and the worker serves again;
// other workers serve on meanwhile. Where that fails it tries again after a while. A device that
// has failed itself (Device::health; with CUDA any error poisons the context of the whole process)
// cannot be mended from inside: then the worker stays out, and the process must be restarted.
//
// Thread-safe.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "core/base/clock.h"
#include "core/runtime/device.h"
#include "server/engine/completion_poller.h"
#include "server/engine/device_loads.h"
#include "server/engine/device_submission.h"
#include "server/engine/key_residency.h"
#include "server/engine/program_pool.h"
#include "server/engine/request.h"
#include "server/engine/scheduler.h"

namespace cipherd::engine {

// How a worker learns that a batch is complete: told by a host function on its output stream, which
// costs nothing on the CPU device; or asking for the event, with both of its threads spinning for a
// moment before they sleep, which saves tens of microseconds with CUDA.
enum class CompletionMode { kNotified, kPolled };

class Worker {
 public:
  // What a worker works with; all of it outlives the worker.
  struct Environment {
    runtime::Device& device;
    Scheduler& scheduler;
    KeyResidency& keys;
    // Null where the engine has one device; then which of them `device` is.
    DeviceLoads* loads = nullptr;
    size_t device_index = 0;
    const base::Clock& clock;
    // Captures the instances of a loaded program for this worker, on a stream of their own. Called
    // on the completion thread after a fault.
    std::function<absl::StatusOr<std::unique_ptr<ProgramPool>>(const ServedProgram& program)>
        build_pool;
    // Called on the completion thread: before what was in flight is ended; and after each attempt
    // to rebuild, with OK where the worker serves again. A failed device sees no attempt.
    std::function<void(const absl::Status& cause)> on_fault;
    std::function<void(const absl::Status& rebuilt)> on_rebuild;
    CompletionMode completion = CompletionMode::kNotified;
    // Where completion is polled: so long the device thread looks for its next request, and so long
    // before the likely end of a lone batch the completion thread looks for that, without sleeping.
    absl::Duration spin = absl::Microseconds(200);
    // Between a failed attempt to rebuild and the next.
    absl::Duration rebuild_pause = absl::Seconds(1);
    // How long a failure of the device may stay unseen while requests are in flight.
    absl::Duration fault_poll_interval = absl::Milliseconds(50);
    // Whether Request::timeline is filled, in seconds since the streams were made.
    const std::atomic<bool>& records_timelines;
  };

  // Creates the streams and starts both threads. `name` appears in logs and stream names.
  static absl::StatusOr<std::unique_ptr<Worker>> Create(std::string name, Environment environment);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // From now on requests of `program` may run here.
  void AddProgram(std::shared_ptr<const ServedProgram> program, std::unique_ptr<ProgramPool> pool)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Gives up the instances of `program`, of which nothing is queued or in flight.
  // FailedPrecondition where a lease has leaked.
  absl::Status RemoveProgram(const ServedProgram& program) ABSL_LOCKS_EXCLUDED(mu_);

  // Takes no more, completes what is in flight, joins the threads and closes the pools.
  // FailedPrecondition where a lease of an instance has leaked. Idempotent.
  absl::Status Stop() ABSL_LOCKS_EXCLUDED(mu_);

  struct InstanceCounts {
    size_t total = 0;
    size_t leased = 0;
  };
  InstanceCounts instance_counts(const ServedProgram& program) const ABSL_LOCKS_EXCLUDED(mu_);
  const std::string& name() const { return name_; }
  size_t device_index() const { return environment_.device_index; }

  // For DeviceLoads, under the scheduler's lock.
  struct Readiness {
    // Has instances of the program, and takes requests.
    bool is_serving = false;
    // The device thread is in Scheduler::Take, and an instance is idle.
    bool can_start = false;
  };
  Readiness ReadinessFor(const ServedProgram& program) const ABSL_LOCKS_EXCLUDED(mu_);
  // Takes requests.
  bool is_healthy() const { return is_serving_.load(); }
  // Where the device has failed for good, the worker goes out now, and not by the next batch that
  // it takes.
  void EndIfDeviceFailed() ABSL_LOCKS_EXCLUDED(mu_);
  // Faults so far.
  uint64_t fault_count() const { return fault_count_.load(); }

 private:
  class BatchClaim;
  using Submissions = std::list<DeviceSubmission>;
  // A submission, and which of its early outputs.
  using EarlyOutputs = std::vector<std::pair<DeviceSubmission*, size_t>>;

  Worker(std::string name, Environment environment);

  absl::Status StartStreams() ABSL_LOCKS_EXCLUDED(mu_);
  // Null where the worker does not have it; to null while it is being rebuilt.
  const std::shared_ptr<ProgramPool>* PoolOf(const ServedProgram& program) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::shared_ptr<ProgramPool> FindPool(const ServedProgram& program) const
      ABSL_LOCKS_EXCLUDED(mu_);

  void LookAtPools() const ABSL_LOCKS_EXCLUDED(mu_);

  void RunDeviceThread();
  // Blocks until there is something to serve with; false where there never will be again.
  bool AwaitServing() ABSL_LOCKS_EXCLUDED(mu_);
  void Submit(DeviceSubmission submission) ABSL_LOCKS_EXCLUDED(mu_);
  // Keeps the books of a submission as its output stream gets on.
  DeviceSubmission::Listener ListenerOf(Submissions::iterator submission) ABSL_LOCKS_EXCLUDED(mu_);
  void EndRefused(std::vector<DeviceSubmission::Refusal> refused);

  void RunCompletionThread();
  // Wait for completed submissions and move them out; beside them, early outputs that have been
  // told of, where those are not told to the requests here. Cancelled once there will be no more,
  // the fault once there is one.
  absl::Status AwaitNotified(EarlyOutputs& early_outputs, Submissions& completed)
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status AwaitPolled(CompletionPoller& poller, Submissions& completed)
      ABSL_LOCKS_EXCLUDED(mu_);
  void Complete(DeviceSubmission& submission);

  void ReportFault(const absl::Status& cause) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndAfterFault(const absl::Status& cause) ABSL_LOCKS_EXCLUDED(mu_);
  // Until the worker serves again (true), or will not (false).
  bool Rebuild() ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status TryRebuild() ABSL_LOCKS_EXCLUDED(mu_);

  const std::string name_;
  const Environment environment_;
  // Of the device thread while it serves, else of the completion thread.
  WorkerStreams streams_;
  // Recorded when the streams were made.
  std::shared_ptr<runtime::Event> epoch_;
  // Recorded while the device thread spins for the next request; nobody waits for it.
  std::shared_ptr<runtime::Event> prepared_;

  // The device thread is in Take. Of the scheduler's lock.
  bool is_taking_ = false;
  // Ends Take of the device thread: stopping, or faulted.
  std::atomic<bool> quit_ = false;
  std::atomic<bool> is_serving_ = false;
  // fault_ is not OK.
  std::atomic<bool> has_faulted_ = false;
  std::atomic<uint64_t> fault_count_ = 0;

  mutable absl::Mutex mu_;
  absl::CondVar changed_;
  // Null while it is being rebuilt.
  std::map<std::shared_ptr<const ServedProgram>, std::shared_ptr<ProgramPool>> pools_
      ABSL_GUARDED_BY(mu_);
  // On the streams in the order of submission, and those that the streams are done with.
  Submissions in_flight_ ABSL_GUARDED_BY(mu_);
  Submissions completed_ ABSL_GUARDED_BY(mu_);
  // Of those, which the requests have not been told of; where completion is told.
  EarlyOutputs early_outputs_ ABSL_GUARDED_BY(mu_);
  // Of in_flight_, from the front, those that are enqueued wholly.
  size_t enqueued_count_ ABSL_GUARDED_BY(mu_) = 0;
  bool is_stopping_ ABSL_GUARDED_BY(mu_) = false;
  // The device thread may submit.
  bool is_submitting_ ABSL_GUARDED_BY(mu_) = false;
  bool device_thread_ended_ ABSL_GUARDED_BY(mu_) = false;
  // The first failure seen since the worker was built.
  absl::Status fault_ ABSL_GUARDED_BY(mu_);

  std::thread device_thread_;
  std::thread completion_thread_;
};

}  // namespace cipherd::engine
