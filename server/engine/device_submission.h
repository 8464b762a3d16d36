// One request on the streams of a worker: everything that is enqueued for it, and what it holds
// until that is done.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "core/execution/copy_handle.h"
#include "core/runtime/event.h"
#include "core/runtime/stream.h"
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

  // Blocks until all are idle or have failed.
  void AwaitQuiet();
};

class DeviceSubmission {
 public:
  DeviceSubmission(RequestPtr request, ProgramPool::Lease instance, KeyResidency::Pin keys)
      : request_(std::move(request)), instance_(std::move(instance)), keys_(std::move(keys)) {}

  // Enqueues, without blocking:
  //   transfer: the key set unless resident; inputs and key table into the instance
  //   compute:  waits for both, replays
  //   output:   waits for the replay, copies the borrowed output into the request's pinned tree,
  //   then
  //             runs `on_done`
  // After an error, may_be_under_way() tells whether the device may use what this holds.
  absl::Status Enqueue(WorkerStreams& streams, KeyResidency& residency,
                       std::function<void()> on_done);
  bool may_be_under_way() const { return may_be_under_way_; }

  // Once everything has completed: adds the device's stages to the request's times.
  void RecordTimes();
  // Gives instance and keys back. The request's own leases stay with it.
  void Release();

  const RequestPtr& request() const { return request_; }

 private:
  RequestPtr request_;
  ProgramPool::Lease instance_;
  KeyResidency::Pin keys_;
  bool may_be_under_way_ = false;
  std::optional<execution::CopyHandle> inputs_copied_;
  std::shared_ptr<const runtime::Event> replayed_;
};

}  // namespace cipherd::engine
