#include "core/runtime/host/host_stream.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/runtime/host/host_device.h"
#include "core/runtime/transfer_checks.h"

namespace cipherd::runtime::host {

HostStream::HostStream(HostDevice& device, std::shared_ptr<TaskQueue> queue)
    : device_(device), queue_(std::move(queue)) {}

HostStream::~HostStream() {
  if (capture_ != nullptr && member_ == Capture::kOrigin) {
    // The capture dies with its origin. Its thread may be another one, which then finds it ended.
    const std::shared_ptr<HostCapture> capture = capture_;
    capture->Invalidate(absl::StrCat("stream '", name(), "' was destroyed"));
    EndCaptureOfAllStreams();
    CapturedMemory memory;
    capture->End(memory).IgnoreError();
  } else if (capture_ != nullptr) {
    capture_->RemoveStream(member_);
  }
  device_.executor().DrainAndRemove(queue_);
}

Device& HostStream::device() const { return device_; }

absl::Status HostStream::Submit(std::string_view name, std::function<absl::Status()> task) {
  CIPHERD_RETURN_IF_ERROR(status());
  if (capture_ != nullptr) {
    capture_->AddNode(member_, name, std::move(task));
    return absl::OkStatus();
  }
  queue_->Push({.name = name, .run = std::move(task)});
  device_.executor().Notify();
  return absl::OkStatus();
}

absl::Status HostStream::CopyAsync(void* destination, const void* source, size_t bytes) {
  CIPHERD_RETURN_IF_ERROR(status());
  if (bytes == 0) return absl::OkStatus();
  CIPHERD_RETURN_IF_ERROR(CheckCopyArguments(destination, source, bytes));
  if (capture_ != nullptr) {
    CIPHERD_RETURN_IF_ERROR(capture_->CheckTransferSide("Stream::CopyAsync", source, bytes));
    CIPHERD_RETURN_IF_ERROR(capture_->CheckTransferSide("Stream::CopyAsync", destination, bytes));
  }
  return Submit("copy", [destination, source, bytes] {
    std::memcpy(destination, source, bytes);
    return absl::OkStatus();
  });
}

absl::Status HostStream::FillAsync(void* destination, uint8_t value, size_t bytes) {
  CIPHERD_RETURN_IF_ERROR(status());
  if (bytes == 0) return absl::OkStatus();
  CIPHERD_RETURN_IF_ERROR(CheckFillArguments(device_.pools(), destination, bytes));
  if (capture_ != nullptr) {
    CIPHERD_RETURN_IF_ERROR(capture_->CheckTransferSide("Stream::FillAsync", destination, bytes));
  }
  return Submit("fill", [destination, value, bytes] {
    std::memset(destination, value, bytes);
    return absl::OkStatus();
  });
}

absl::Status HostStream::LaunchHost(std::function<void()> function) {
  return Submit("host function", [function = std::move(function)] {
    function();
    return absl::OkStatus();
  });
}

absl::Status HostStream::Record(Event& event) {
  CIPHERD_RETURN_IF_ERROR(status());
  auto* const host_event = dynamic_cast<HostEvent*>(&event);
  if (host_event == nullptr || &event.device() != &device_) {
    return absl::InvalidArgumentError("Stream::Record: the event is of another device");
  }
  if (capture_ != nullptr) {
    host_event->set_latest(
        HostEvent::CapturedRecord{capture_, capture_->ClockOf(member_), capture_->tail(member_)});
    return absl::OkStatus();
  }
  auto completed_at = std::make_shared<TimeStamp>();
  const uint64_t position = queue_->Push({.name = "record", .completed_at = completed_at});
  host_event->set_latest(HostEvent::EagerRecord{{queue_, position}, std::move(completed_at)});
  device_.executor().Notify();
  return absl::OkStatus();
}

absl::Status HostStream::RecordInLaunches(std::shared_ptr<Event> event) {
  if (event == nullptr) return absl::InvalidArgumentError("Stream::RecordInLaunches: no event");
  if (capture_ == nullptr) return Record(*event);
  CIPHERD_RETURN_IF_ERROR(status());
  auto host_event = std::dynamic_pointer_cast<HostEvent>(event);
  if (host_event == nullptr || &event->device() != &device_) {
    return absl::InvalidArgumentError("Stream::RecordInLaunches: the event is of another device");
  }
  capture_->AddRecord(member_, std::move(host_event));
  return absl::OkStatus();
}

absl::Status HostStream::Wait(const Event& event) {
  CIPHERD_RETURN_IF_ERROR(status());
  const auto* const host_event = dynamic_cast<const HostEvent*>(&event);
  if (host_event == nullptr || &event.device() != &device_) {
    return absl::InvalidArgumentError("Stream::Wait: the event is of another device");
  }
  const HostEvent::Latest latest = host_event->latest();
  if (std::holds_alternative<HostEvent::NeverRecorded>(latest)) return absl::OkStatus();
  if (const auto* captured = std::get_if<HostEvent::CapturedRecord>(&latest)) {
    return Wait(*captured);
  }
  if (capture_ != nullptr) {
    return capture_->Refuse("Stream::Wait", "the event was recorded outside the capture");
  }
  queue_->Push({.name = "wait", .wait_for = std::get<HostEvent::EagerRecord>(latest).point});
  device_.executor().Notify();
  return absl::OkStatus();
}

absl::Status HostStream::Wait(const HostEvent::CapturedRecord& record) {
  const std::shared_ptr<HostCapture> recorded_in = record.capture.lock();
  CIPHERD_RETURN_IF_ERROR(CheckWaitOnCaptured(recorded_in.get(), capture_.get()));
  if (capture_ == nullptr) {
    capture_ = recorded_in;
    member_ = capture_->AddMember(name(), record.clock);
    capture_->AddStream(*this, member_, record.tail);
    return absl::OkStatus();
  }
  capture_->Advance(member_, record.clock);
  capture_->AddToTail(member_, record.tail);
  return absl::OkStatus();
}

absl::StatusOr<bool> HostStream::Query() {
  CIPHERD_RETURN_IF_ERROR(RefuseWhileCapturing("Stream::Query", capture_.get()));
  const bool is_done = device_.executor().Poll({queue_, queue_->Mark()});
  CIPHERD_RETURN_IF_ERROR(status());
  return is_done;
}

absl::Status HostStream::Synchronize() {
  CIPHERD_RETURN_IF_ERROR(RefuseWhileCapturing("Stream::Synchronize", capture_.get()));
  device_.executor().Await({queue_, queue_->Mark()});
  return status();
}

absl::Status HostStream::BeginCapture(bool check_liveness) {
  CIPHERD_RETURN_IF_ERROR(status());
  if (capture_ != nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("Stream::BeginCapture: stream '", name(), "' captures already"));
  }
  auto capture = std::make_shared<HostCapture>(name(), check_liveness, device_.pools());
  CIPHERD_RETURN_IF_ERROR(Capture::BindToThisThread(capture));
  capture_ = std::move(capture);
  member_ = Capture::kOrigin;
  capture_->AddStream(*this, member_, {});
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Graph>> HostStream::EndCapture() {
  CIPHERD_RETURN_IF_ERROR(CheckEndCapture(capture_.get(), member_));
  const std::shared_ptr<HostCapture> capture = capture_;
  Capture::UnbindFromThisThread();
  EndCaptureOfAllStreams();
  CapturedMemory memory;
  CIPHERD_RETURN_IF_ERROR(capture->End(memory));
  return std::make_unique<HostGraph>(device_, capture->TakeNodes(), std::move(memory));
}

void HostStream::EndCaptureOfAllStreams() {
  const std::shared_ptr<HostCapture> capture = capture_;
  for (HostStream* stream : capture->streams()) stream->capture_.reset();
}

absl::Status HostStream::DeclareAccess(std::span<const MemoryAccess> accesses) {
  if (capture_ == nullptr) return absl::OkStatus();
  return capture_->CheckAccesses(accesses);
}

absl::StatusOr<QueuePosition> HostStream::LaunchGraph(MakeReplay make_replay) {
  CIPHERD_RETURN_IF_ERROR(status());
  if (capture_ != nullptr) {
    return capture_->Refuse("Graph::Launch", "forbidden on a stream that captures");
  }
  // One thread at a time submits to a stream: nothing comes in between.
  const QueuePosition end{queue_, queue_->Mark() + 1};
  queue_->Push({.name = "graph", .run = make_replay(end)});
  device_.executor().Notify();
  return end;
}

}  // namespace cipherd::runtime::host
