// An event of a host device: the point of a queue, or of a capture, that it was last recorded at.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "core/runtime/capture.h"
#include "core/runtime/event.h"
#include "core/runtime/host/task_queue.h"

namespace cipherd::runtime::host {

class HostCapture;
class HostDevice;

class HostEvent final : public Event {
 public:
  struct NeverRecorded {};
  struct EagerRecord {
    QueuePosition point;
    std::shared_ptr<TimeStamp> completed_at;
  };
  struct CapturedRecord {
    std::weak_ptr<HostCapture> capture;
    CaptureClock clock;
    // Nodes that work ordered after this record depends on.
    std::vector<size_t> tail;
  };
  using Latest = std::variant<NeverRecorded, EagerRecord, CapturedRecord>;

  explicit HostEvent(HostDevice& device) : device_(device) {}

  Device& device() const override;
  absl::StatusOr<bool> Query() const override;
  absl::Status Synchronize() const override;
  absl::StatusOr<double> SecondsSince(const Event& start) const override;

  void set_latest(Latest latest);
  Latest latest() const;

 private:
  // The latest record's point, one without queue where it was never recorded; FailedPrecondition
  // where this thread captures, or the latest record belongs to a capture.
  absl::StatusOr<EagerRecord> RecordFor(std::string_view call) const;

  HostDevice& device_;
  mutable std::mutex mu_;
  Latest latest_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cipherd::runtime::host
