#include "tests/testing/fault_device.h"

#include <span>
#include <string>
#include <utility>

#include "core/base/status_macros.h"
#include "core/runtime/host/task_stream.h"

namespace cipherd::testing {
namespace {

using runtime::Event;
using runtime::Graph;
using runtime::MemoryAccess;
using runtime::StoragePtr;
using runtime::Stream;
using runtime::StreamProgress;
using runtime::host::TaskStream;

class FaultStorage final : public runtime::Storage {
 public:
  FaultStorage(StoragePtr inner, FaultDevice& device)
      : Storage(inner->data(), inner->bytes(), inner->space(), &device), inner_(std::move(inner)) {}

  void RecordUse(Stream& stream) override { inner_->RecordUse(FaultDevice::Unwrap(stream)); }

 private:
  const StoragePtr inner_;
};

class FaultEvent final : public Event {
 public:
  FaultEvent(std::shared_ptr<Event> inner, FaultDevice& device)
      : inner_(std::move(inner)), device_(device) {}

  Event& inner() const { return *inner_; }
  const std::shared_ptr<Event>& shared() const { return inner_; }

  runtime::Device& device() const override { return device_; }
  absl::StatusOr<bool> Query() const override { return inner_->Query(); }
  absl::Status Synchronize() const override {
    CIPHERD_RETURN_IF_ERROR(device_.Count(FaultPoint::kSynchronize));
    return inner_->Synchronize();
  }
  absl::StatusOr<double> SecondsSince(const Event& start) const override {
    const auto* wrapper = dynamic_cast<const FaultEvent*>(&start);
    return inner_->SecondsSince(wrapper == nullptr ? start : wrapper->inner());
  }

 private:
  const std::shared_ptr<Event> inner_;
  FaultDevice& device_;
};

class FaultGraph final : public Graph {
 public:
  FaultGraph(std::unique_ptr<Graph> inner, FaultDevice& device)
      : inner_(std::move(inner)), device_(device) {}

  absl::Status Launch(Stream& stream) override {
    CIPHERD_RETURN_IF_ERROR(device_.Count(FaultPoint::kGraphLaunch));
    return inner_->Launch(FaultDevice::Unwrap(stream));
  }
  absl::Status CheckLiveness() const override { return inner_->CheckLiveness(); }
  size_t node_count() const override { return inner_->node_count(); }
  size_t pool_bytes() const override { return inner_->pool_bytes(); }
  void* native_handle() const override { return inner_->native_handle(); }

 private:
  const std::unique_ptr<Graph> inner_;
  FaultDevice& device_;
};

class Wrapper {
 public:
  virtual ~Wrapper() = default;
  virtual Stream& inner_stream() = 0;
};

// Base is TaskStream where the wrapped stream is one, else Stream.
template <typename Base>
class FaultStreamOf : public Base, public Wrapper {
 public:
  FaultStreamOf(std::unique_ptr<Stream> inner, FaultDevice& device)
      : inner_(std::move(inner)), device_(device) {}

  Stream& inner_stream() override { return *inner_; }

  runtime::Device& device() const override { return device_; }
  const std::string& name() const override { return inner_->name(); }
  std::shared_ptr<StreamProgress> progress() const override { return inner_->progress(); }

  absl::Status CopyAsync(void* destination, const void* source, size_t bytes) override {
    CIPHERD_RETURN_IF_ERROR(device_.Count(FaultPoint::kCopy));
    return inner_->CopyAsync(destination, source, bytes);
  }
  absl::Status FillAsync(void* destination, uint8_t value, size_t bytes) override {
    CIPHERD_RETURN_IF_ERROR(device_.Count(FaultPoint::kFill));
    return inner_->FillAsync(destination, value, bytes);
  }
  absl::Status Record(Event& event) override {
    CIPHERD_RETURN_IF_ERROR(device_.Count(FaultPoint::kRecord));
    auto* wrapper = dynamic_cast<FaultEvent*>(&event);
    return inner_->Record(wrapper == nullptr ? event : wrapper->inner());
  }
  absl::Status RecordInLaunches(std::shared_ptr<Event> event) override {
    CIPHERD_RETURN_IF_ERROR(device_.Count(FaultPoint::kRecord));
    const auto wrapper = std::dynamic_pointer_cast<FaultEvent>(event);
    return inner_->RecordInLaunches(wrapper == nullptr ? std::move(event) : wrapper->shared());
  }
  absl::Status Wait(const Event& event) override {
    CIPHERD_RETURN_IF_ERROR(device_.Count(FaultPoint::kWait));
    const auto* wrapper = dynamic_cast<const FaultEvent*>(&event);
    return inner_->Wait(wrapper == nullptr ? event : wrapper->inner());
  }
  absl::Status LaunchHost(std::function<void()> function) override {
    CIPHERD_RETURN_IF_ERROR(device_.Count(FaultPoint::kLaunchHost));
    return inner_->LaunchHost(std::move(function));
  }
  absl::StatusOr<bool> Query() override { return inner_->Query(); }
  absl::Status Synchronize() override {
    CIPHERD_RETURN_IF_ERROR(device_.Count(FaultPoint::kSynchronize));
    return inner_->Synchronize();
  }
  absl::Status status() const override { return inner_->status(); }
  absl::Status BeginCapture(bool check_liveness) override {
    CIPHERD_RETURN_IF_ERROR(device_.Count(FaultPoint::kBeginCapture));
    return inner_->BeginCapture(check_liveness);
  }
  absl::StatusOr<std::unique_ptr<Graph>> EndCapture() override {
    const absl::Status fault = device_.Count(FaultPoint::kEndCapture);
    absl::StatusOr<std::unique_ptr<Graph>> graph = inner_->EndCapture();
    CIPHERD_RETURN_IF_ERROR(fault);
    CIPHERD_RETURN_IF_ERROR(graph.status());
    return std::make_unique<FaultGraph>(*std::move(graph), device_);
  }
  bool is_capturing() const override { return inner_->is_capturing(); }
  absl::Status DeclareAccess(std::span<const MemoryAccess> accesses) override {
    return inner_->DeclareAccess(accesses);
  }

 protected:
  const std::unique_ptr<Stream> inner_;
  FaultDevice& device_;
};

using FaultStream = FaultStreamOf<Stream>;

class FaultTaskStream final : public FaultStreamOf<TaskStream> {
 public:
  using FaultStreamOf::FaultStreamOf;

  absl::Status Submit(std::string_view name, std::function<absl::Status()> task) override {
    CIPHERD_RETURN_IF_ERROR(device_.Count(FaultPoint::kSubmit));
    return static_cast<TaskStream&>(*inner_).Submit(name, std::move(task));
  }
};

}  // namespace

std::string_view ToString(FaultPoint point) {
  switch (point) {
    case FaultPoint::kCreateStream:
      return "create stream";
    case FaultPoint::kCreateEvent:
      return "create event";
    case FaultPoint::kAllocate:
      return "allocate";
    case FaultPoint::kAllocatePinned:
      return "allocate pinned";
    case FaultPoint::kCopy:
      return "copy";
    case FaultPoint::kFill:
      return "fill";
    case FaultPoint::kSubmit:
      return "submit";
    case FaultPoint::kLaunchHost:
      return "launch host";
    case FaultPoint::kRecord:
      return "record";
    case FaultPoint::kWait:
      return "wait";
    case FaultPoint::kSynchronize:
      return "synchronize";
    case FaultPoint::kBeginCapture:
      return "begin capture";
    case FaultPoint::kEndCapture:
      return "end capture";
    case FaultPoint::kGraphLaunch:
      return "graph launch";
    case FaultPoint::kCount:
      break;
  }
  return "unknown";
}

FaultDevice::FaultDevice(std::unique_ptr<runtime::Device> inner) : inner_(std::move(inner)) {}

void FaultDevice::FailNth(FaultPoint point, int n, absl::Status error) {
  absl::MutexLock lock(&mu_);
  const size_t index = static_cast<size_t>(point);
  faults_[index][call_counts_[index] + n] = std::move(error);
}

void FaultDevice::ClearFaults() {
  absl::MutexLock lock(&mu_);
  for (auto& faults : faults_) faults.clear();
}

int FaultDevice::call_count(FaultPoint point) const {
  absl::MutexLock lock(&mu_);
  return call_counts_[static_cast<size_t>(point)];
}

absl::Status FaultDevice::health() const {
  CIPHERD_RETURN_IF_ERROR(inner_->health());
  absl::MutexLock lock(&mu_);
  return failure_;
}

absl::Status FaultDevice::Count(FaultPoint point) {
  const size_t index = static_cast<size_t>(point);
  std::function<void()> interrupt;
  {
    absl::MutexLock lock(&mu_);
    interrupt = interrupts_[index];
  }
  if (interrupt) interrupt();
  absl::MutexLock lock(&mu_);
  auto fault = faults_[index].extract(++call_counts_[index]);
  CIPHERD_RETURN_IF_ERROR(failure_);
  return fault.empty() ? absl::OkStatus() : std::move(fault.mapped());
}

Stream& FaultDevice::Unwrap(Stream& stream) {
  auto* wrapper = dynamic_cast<Wrapper*>(&stream);
  return wrapper == nullptr ? stream : wrapper->inner_stream();
}

absl::StatusOr<std::unique_ptr<Stream>> FaultDevice::CreateStream(std::string_view name) {
  CIPHERD_RETURN_IF_ERROR(Count(FaultPoint::kCreateStream));
  CIPHERD_ASSIGN_OR_RETURN(std::unique_ptr<Stream> inner, inner_->CreateStream(name));
  if (dynamic_cast<TaskStream*>(inner.get()) != nullptr) {
    return std::make_unique<FaultTaskStream>(std::move(inner), *this);
  }
  return std::make_unique<FaultStream>(std::move(inner), *this);
}

absl::StatusOr<std::shared_ptr<Event>> FaultDevice::CreateEvent() {
  CIPHERD_RETURN_IF_ERROR(Count(FaultPoint::kCreateEvent));
  CIPHERD_ASSIGN_OR_RETURN(std::shared_ptr<Event> inner, inner_->CreateEvent());
  return std::make_shared<FaultEvent>(std::move(inner), *this);
}

absl::StatusOr<StoragePtr> FaultDevice::Allocate(size_t bytes, Stream& stream) {
  CIPHERD_RETURN_IF_ERROR(Count(FaultPoint::kAllocate));
  CIPHERD_ASSIGN_OR_RETURN(StoragePtr inner, inner_->Allocate(bytes, Unwrap(stream)));
  return std::make_shared<FaultStorage>(std::move(inner), *this);
}

absl::StatusOr<StoragePtr> FaultDevice::AllocatePinned(size_t bytes) {
  CIPHERD_RETURN_IF_ERROR(Count(FaultPoint::kAllocatePinned));
  CIPHERD_ASSIGN_OR_RETURN(StoragePtr inner, inner_->AllocatePinned(bytes));
  return std::make_shared<FaultStorage>(std::move(inner), *this);
}

runtime::MemoryStats FaultDevice::device_memory_stats() const {
  return inner_->device_memory_stats();
}

runtime::MemoryStats FaultDevice::pinned_memory_stats() const {
  return inner_->pinned_memory_stats();
}

}  // namespace cipherd::testing
