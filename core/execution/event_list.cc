#include "core/execution/event_list.h"

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace cipherd::execution {

absl::Status CheckEvents(const EventList& events, const runtime::Device& device) {
  for (size_t i = 0; i < events.size(); ++i) {
    if (events[i] == nullptr) {
      return absl::InvalidArgumentError(absl::StrCat("wait_for[", i, "]: expected an event"));
    }
    if (&events[i]->device() != &device) {
      return absl::InvalidArgumentError(absl::StrCat("wait_for[", i, "]: expected an event of ",
                                                     device.id().ToString(), ", got one of ",
                                                     events[i]->device().id().ToString()));
    }
  }
  return absl::OkStatus();
}

absl::Status WaitForEvents(const EventList& events, runtime::Stream& stream) {
  for (const auto& event : events) CIPHERD_RETURN_IF_ERROR(stream.Wait(*event));
  return absl::OkStatus();
}

}  // namespace cipherd::execution
