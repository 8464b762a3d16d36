// One batch on the streams of a worker: everything that is enqueued for it, and what it holds until
// that is done.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "core/execution/copy_handle.h"
#include "core/runtime/event.h"
#include "core/runtime/stream.h"
#include "server/engine/device_loads.h"
#include "server/engine/key_residency.h"
#include "server/engine/program_pool.h"
#include "server/engine/request.h"
#include "server/engine/stage_times.h"

namespace cipherd::engine {

// The streams of a worker. Used by one thread at a time.
struct WorkerStreams {
  std::unique_ptr<runtime::Stream> transfer;
  std::unique_ptr<runtime::Stream> compute;
  std::unique_ptr<runtime::Stream> output;

  static absl::StatusOr<WorkerStreams> Create(runtime::Device& device, std::string_view worker);

  // Blocks until nothing that was enqueued can still run. A stream that does not say so is
  // destroyed, which waits for it: the streams are not to be used afterwards.
  void AwaitQuiet();
};

class DeviceSubmission {
 public:
  // One request of the batch, and its keys.
  struct Item {
    RequestPtr request;
    KeyResidency::Pin keys;
  };
  // One that could not be part of the batch after all, and why.
  struct Refusal {
    RequestPtr request;
    absl::Status status;
  };

  // At most as many items as the instance's batch has. `charge` is empty on the only device.
  DeviceSubmission(std::vector<Item> items, ProgramPool::Lease instance,
                   DeviceLoads::Charge charge = {})
      : items_(std::move(items)), instance_(std::move(instance)), charge_(std::move(charge)) {}

  // Enqueues on the transfer stream, without blocking, the copies of key sets that are not
  // resident. An item whose keys find no room is refused, and its place will compute another one's
  // result again; with none left there is nothing to enqueue.
  absl::Status LoadKeys(WorkerStreams& streams, KeyResidency& residency);
  bool has_items() const { return !items_.empty(); }
  std::vector<Refusal> TakeRefused() { return std::exchange(refused_, {}); }

  // What host functions on the output stream tell of, where completion is told and not asked for.
  struct Listener {
    // Number `output` of EarlyOutputs() has been copied.
    std::function<void(size_t output)> on_early_output;
    std::function<void()> on_done;
  };

  // Enqueues, without blocking:
  //   transfer: inputs and key table into the instance
  //   compute:  waits for keys and inputs, replays
  //   output:   copies outputs that requests want early, each as soon as it is computed; waits for
  //             the replay, copies the rest of the borrowed outputs into the requests' pinned trees
  // with the calls of `listener`, where there is one, in between and behind.
  absl::Status Enqueue(WorkerStreams& streams,
                       const std::optional<Listener>& listener = std::nullopt);

  // After an error of either: whether the device may use what this holds.
  bool may_be_under_way() const { return may_be_under_way_; }

  // Early outputs, in the order in which they are copied, the end of the replay, then that of
  // everything. After Enqueue.
  std::vector<const runtime::Event*> milestones() const;
  // Milestone `index` has passed, and the last one has not.
  void OnMilestone(size_t index);
  // Tells the request whose it is of early output `output`.
  void TellEarlyOutput(size_t output);
  absl::Duration& expected_wait() const { return instance_->expected_wait(); }

  // The completion thread has learnt of the end.
  void set_seen_at(absl::Time time) { seen_at_ = time; }

  // Reads the times of what ends with the replay. May be called as soon as that has completed, so
  // that less is left for the end.
  void ReadReplayTimes();
  // Once everything has completed: adds the device's stages to the requests' times, and the batch
  // to what its program has run.
  void RecordTimes();
  void CountRun();
  // The same for their timelines, from `epoch` on.
  void RecordTimeline(const runtime::Event& epoch);
  // Gives instance and keys back, and returns the requests, whose own leases stay with them.
  std::vector<RequestPtr> Release();

 private:
  // An output that its request wants as soon as it is there.
  struct EarlyOutput {
    size_t item;
    size_t output;
  };

  // All of Enqueue but the last call of the listener.
  absl::Status EnqueueStages(WorkerStreams& streams, const std::optional<Listener>& listener);
  absl::StatusOr<execution::CopyHandle> CopyInputs(runtime::Stream& transfer);
  absl::Status CopyEarlyOutputs(const value::ValueTree& borrowed,
                                const std::optional<Listener>& listener, runtime::Stream& output);
  // Those that have not been copied early.
  absl::Status CopyOutputs(const value::ValueTree& borrowed, runtime::Stream& output);
  // The item that is computed at `place` of the batch.
  const Item& ItemAt(int place) const { return items_[place % items_.size()]; }

  std::vector<Item> items_;
  std::vector<EarlyOutput> early_outputs_;
  std::vector<Refusal> refused_;
  ProgramPool::Lease instance_;
  DeviceLoads::Charge charge_;
  // When the device thread had it.
  absl::Time taken_at_ = absl::Now();
  absl::Time seen_at_;
  bool may_be_under_way_ = false;
  std::optional<execution::CopyHandle> inputs_copied_;
  std::shared_ptr<const runtime::Event> replayed_;
  struct ReplayTimes {
    double transfer_in_seconds;
    double replay_seconds;
  };
  std::optional<ReplayTimes> replay_times_;
};

}  // namespace cipherd::engine
