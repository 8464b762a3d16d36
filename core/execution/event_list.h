// Events that a piece of work is ordered after.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "core/runtime/device.h"
#include "core/runtime/event.h"
#include "core/runtime/stream.h"

namespace cipherd::execution {

using EventList = std::vector<std::shared_ptr<const runtime::Event>>;

// InvalidArgument for an event that is null or of another device.
absl::Status CheckEvents(const EventList& events, const runtime::Device& device);

// Makes later work on `stream` come after every event. Does not block.
absl::Status WaitForEvents(const EventList& events, runtime::Stream& stream);

}  // namespace cipherd::execution
