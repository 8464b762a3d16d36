#include "core/runtime/host/host_event.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/runtime/host/host_device.h"

namespace cipherd::runtime::host {

Device& HostEvent::device() const { return device_; }

void HostEvent::set_latest(Latest latest) {
  std::lock_guard lock(mu_);
  latest_ = std::move(latest);
}

HostEvent::Latest HostEvent::latest() const {
  std::lock_guard lock(mu_);
  return latest_;
}

absl::StatusOr<HostEvent::EagerRecord> HostEvent::RecordFor(std::string_view call) const {
  CIPHERD_RETURN_IF_ERROR(RefuseWhileCapturing(call));
  const Latest latest = this->latest();
  if (std::holds_alternative<CapturedRecord>(latest)) {
    return absl::FailedPreconditionError(absl::StrCat(
        std::string(call), ": the event was last recorded in a capture, which does not run"));
  }
  if (const auto* record = std::get_if<EagerRecord>(&latest)) return *record;
  return EagerRecord{};
}

absl::StatusOr<bool> HostEvent::Query() const {
  CIPHERD_ASSIGN_OR_RETURN(const EagerRecord record, RecordFor("Event::Query"));
  if (record.point.queue != nullptr && !device_.executor().Poll(record.point)) return false;
  CIPHERD_RETURN_IF_ERROR(device_.health());
  return true;
}

absl::Status HostEvent::Synchronize() const {
  CIPHERD_ASSIGN_OR_RETURN(const EagerRecord record, RecordFor("Event::Synchronize"));
  if (record.point.queue != nullptr) device_.executor().Await(record.point);
  return device_.health();
}

absl::StatusOr<double> HostEvent::SecondsSince(const Event& start) const {
  const auto* const host_start = dynamic_cast<const HostEvent*>(&start);
  if (host_start == nullptr || &host_start->device_ != &device_) {
    return absl::InvalidArgumentError("Event::SecondsSince: start is an event of another device");
  }
  CIPHERD_ASSIGN_OR_RETURN(const EagerRecord end, RecordFor("Event::SecondsSince"));
  CIPHERD_ASSIGN_OR_RETURN(const EagerRecord begin, host_start->RecordFor("Event::SecondsSince"));
  CIPHERD_RETURN_IF_ERROR(device_.health());
  for (const EagerRecord& record : {begin, end}) {
    if (record.point.queue == nullptr || !record.point.queue->HasPassed(record.point.position)) {
      return absl::FailedPreconditionError(
          "Event::SecondsSince: both events must have been recorded and be complete");
    }
  }
  return 1e-9 * static_cast<double>(end.completed_at->nanoseconds.load() -
                                    begin.completed_at->nanoseconds.load());
}

}  // namespace cipherd::runtime::host
