// Options of reusable buffers (reusable_value_buffer.h), and what they must satisfy.
#pragma once

#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/execution/event_list.h"
#include "core/runtime/device.h"
#include "core/runtime/stream.h"
#include "core/value/tensor.h"
#include "core/value/value_tree.h"

namespace cipherd::execution {

struct BufferOptions {
  // Where the storage is to be. Absent: where all tensors of the example are.
  std::optional<value::Placement> placement = std::nullopt;
  // Page-locked host memory, from the pool of `pinned_device` (required then). Host targets only.
  bool pin_memory = false;
  runtime::Device* pinned_device = nullptr;
  // Carries the first copy; of the target's device, or of the example's where the target is host
  // memory. Required where either is a device. What the example holds in this stream's order is
  // copied.
  runtime::Stream* stream = nullptr;
};

struct CopyOptions {
  // Carries the copy; of the target's device. Required by a device target, refused by a host one.
  runtime::Stream* stream = nullptr;
  // Where false, the call returns when the copy is complete.
  bool non_blocking = true;
  // The copy starts after these, for instance after a consumer of the previous payload. Refused by
  // a host target.
  EventList wait_for = {};
  // What the root of the source is called in messages.
  std::string_view root_label = "source";
};

// Where a buffer like `example` is to be. InvalidArgument where that is ambiguous, or the other
// options do not go with it or with where the example is.
absl::StatusOr<value::Placement> TargetPlacement(const value::ValueTree& example,
                                                 const BufferOptions& options);

// InvalidArgument where stream and events do not go with the target.
absl::Status CheckCopyOptions(const CopyOptions& options, value::Placement target);

// OK for a stream of `device`; InvalidArgument for none or one of another device;
// FailedPrecondition for one that is capturing, since neither copies nor replays can be captured.
absl::Status CheckStreamOf(const runtime::Stream* stream, const runtime::Device& device);

}  // namespace cipherd::execution
