// The records that one launch of a host graph makes while it runs: an event that was recorded for
// launches (Stream::RecordInLaunches) completes when the graph gets there, not when it ends.
//
//   LaunchRecords::Events                the graph has them, in the order of its nodes
//   LaunchRecords records(events, {queue, position of the launch}, health);
//   ... the launch is enqueued ...
//   records.Publish();                   waits bind to this launch from here on
//   records.Pass(0);                     the graph's task, at that node
//
// What the graph has not passed when this is destroyed, because it failed or was dropped, fails, so
// that nobody waits for ever and nothing behind it runs. Each record is a queue of its own, which
// no executor knows: whoever runs the graph moves it.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "core/runtime/device_health.h"
#include "core/runtime/host/host_event.h"
#include "core/runtime/host/task_queue.h"

namespace cipherd::runtime::host {

class LaunchRecords {
 public:
  using Events = std::vector<std::shared_ptr<HostEvent>>;

  // `launch` is the point at which the launch will have ended: an executor that can run one task at
  // a time reaches the records by running that.
  LaunchRecords(const Events& events, const QueuePosition& launch,
                const std::shared_ptr<DeviceHealth>& health);
  ~LaunchRecords() { FailRest(absl::InternalError("the graph did not get to a record")); }
  LaunchRecords(const LaunchRecords&) = delete;
  LaunchRecords& operator=(const LaunchRecords&) = delete;

  // By the thread that launches.
  void Publish();
  // By the thread that runs the graph, one after another.
  void Pass(size_t record);
  void FailRest(const absl::Status& status);

 private:
  struct Record {
    std::shared_ptr<HostEvent> event;
    std::shared_ptr<TaskQueue> queue;
    std::shared_ptr<TimeStamp> completed_at;
    bool is_pending = true;
  };

  static void End(Record& record, const absl::Status& status);

  std::vector<Record> records_;
};

}  // namespace cipherd::runtime::host
