#include "core/runtime/host/launch_records.h"

#include <optional>
#include <utility>

namespace cipherd::runtime::host {

LaunchRecords::LaunchRecords(const Events& events, const QueuePosition& launch,
                             const std::shared_ptr<DeviceHealth>& health) {
  for (const std::shared_ptr<HostEvent>& event : events) {
    auto queue = std::make_shared<TaskQueue>(launch.queue->name(), health);
    auto completed_at = std::make_shared<TimeStamp>();
    queue->Push({.name = "graph", .wait_for = launch, .completed_at = completed_at});
    records_.push_back({event, std::move(queue), std::move(completed_at)});
  }
}

void LaunchRecords::Publish() {
  for (const Record& record : records_) {
    record.event->set_latest(HostEvent::EagerRecord{{record.queue, 1}, record.completed_at});
  }
}

void LaunchRecords::Pass(size_t record) { End(records_[record], absl::OkStatus()); }

void LaunchRecords::FailRest(const absl::Status& status) {
  for (Record& record : records_) {
    if (record.is_pending) End(record, status);
  }
}

void LaunchRecords::End(Record& record, const absl::Status& status) {
  record.is_pending = false;
  std::optional<Task> task = record.queue->AwaitTask();
  // The launch, inside which this is.
  task->wait_for.reset();
  if (!status.ok()) task->run = [status] { return status; };
  record.queue->Execute(*std::move(task));
}

}  // namespace cipherd::runtime::host
