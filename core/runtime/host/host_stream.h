// A stream of a host device: a task queue, or while it captures a part of a HostCapture.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "core/runtime/host/host_capture.h"
#include "core/runtime/host/host_event.h"
#include "core/runtime/host/task_queue.h"
#include "core/runtime/host/task_stream.h"

namespace cipherd::runtime::host {

class HostDevice;

class HostStream final : public TaskStream {
 public:
  HostStream(HostDevice& device, std::shared_ptr<TaskQueue> queue);
  ~HostStream() override;

  Device& device() const override;
  const std::string& name() const override { return queue_->name(); }
  std::shared_ptr<StreamProgress> progress() const override { return queue_; }

  absl::Status CopyAsync(void* destination, const void* source, size_t bytes) override;
  absl::Status FillAsync(void* destination, uint8_t value, size_t bytes) override;
  absl::Status Record(Event& event) override;
  absl::Status RecordInLaunches(std::shared_ptr<Event> event) override;
  absl::Status Wait(const Event& event) override;
  absl::Status LaunchHost(std::function<void()> function) override;
  absl::StatusOr<bool> Query() override;
  absl::Status Synchronize() override;
  absl::Status status() const override { return queue_->status(); }
  absl::Status BeginCapture(bool check_liveness) override;
  absl::StatusOr<std::unique_ptr<Graph>> EndCapture() override;
  bool is_capturing() const override { return capture_ != nullptr; }
  absl::Status DeclareAccess(std::span<const MemoryAccess> accesses) override;
  absl::Status Submit(std::string_view name, std::function<absl::Status()> task) override;

  // Enqueues the replay of a graph, which `make_replay` makes once nothing can refuse it any more,
  // for the point at which it will have ended. FailedPrecondition, and the capture is invalidated,
  // inside one.
  using MakeReplay = absl::FunctionRef<std::function<absl::Status()>(const QueuePosition& end)>;
  absl::StatusOr<QueuePosition> LaunchGraph(MakeReplay make_replay);

  const std::shared_ptr<TaskQueue>& queue() const { return queue_; }
  // The capture that this stream takes part in, or null.
  const std::shared_ptr<HostCapture>& capture() const { return capture_; }

 private:
  absl::Status Wait(const HostEvent::CapturedRecord& record);
  void EndCaptureOfAllStreams();

  HostDevice& device_;
  const std::shared_ptr<TaskQueue> queue_;
  std::shared_ptr<HostCapture> capture_;
  size_t member_ = 0;
};

}  // namespace cipherd::runtime::host
