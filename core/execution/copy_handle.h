// One copy into a reusable buffer: when it is done, and what it keeps alive until then.
//
//   CIPHERD_ASSIGN_OR_RETURN(CopyHandle copied, buffer->CopyFrom(tile, {.stream = &transfer}));
//   CIPHERD_RETURN_IF_ERROR(copied.WaitOn(compute).status());  // the CPU goes on
//   // work enqueued on `compute` from here on reads the new payload
//
// Like a shared future: copies of a handle are the same copy. It owns the submitted source storage
// until the copy is known to be complete, so that clearing the source tree can never free memory
// which is being read. Only ReusableValueBuffer makes handles. Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/runtime/event.h"
#include "core/runtime/memory.h"
#include "core/runtime/stream.h"
#include "core/value/tensor.h"

namespace cipherd::execution {

class ReusableValueBuffer;

class CopyHandle {
 public:
  // Completes with the copy; null for a copy into host memory, which was complete on return.
  std::shared_ptr<const runtime::Event> event() const;
  // The target's placement.
  value::Placement placement() const;
  // Payload bytes of this copy.
  int64_t bytes_copied() const;

  // Whether the copy is complete. Never blocks; true releases the source. The device's error if it
  // failed.
  absl::StatusOr<bool> Done() const;

  // Makes later work on `stream` come after the copy, without blocking the CPU, and returns this
  // handle. Nothing to do for a handle without event. InvalidArgument for a stream of another
  // device.
  absl::StatusOr<CopyHandle> WaitOn(runtime::Stream& stream) const;

  // Blocks the calling thread until the copy is complete, then releases the source.
  absl::Status Synchronize() const;

  // Whether both are handles of one copy.
  friend bool operator==(const CopyHandle& a, const CopyHandle& b) { return a.state_ == b.state_; }

 private:
  friend class ReusableValueBuffer;

  struct State;
  // `token` identifies the buffer, and is kept so that no later buffer can have the same.
  CopyHandle(std::shared_ptr<const runtime::Event> event, value::Placement placement,
             std::vector<runtime::StoragePtr> sources, int64_t bytes_copied,
             std::shared_ptr<const void> token);

  bool HasToken(const std::shared_ptr<const void>& token) const;

  std::shared_ptr<State> state_;
};

}  // namespace cipherd::execution
