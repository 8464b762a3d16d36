#include "core/runtime/host/stream_gate.h"

#include <optional>
#include <utility>

#include "core/runtime/host/host_device.h"

namespace cipherd::runtime::host {

StreamGate::StreamGate(HostStream& stream)
    : executor_(static_cast<HostDevice&>(stream.device()).executor()),
      lock_(std::make_shared<TaskQueue>("gate", std::make_shared<DeviceHealth>())) {
  const uint64_t released = lock_->Push({.name = "release"});
  stream.queue()->Push({.name = "gate", .wait_for = QueuePosition{lock_, released}});
  executor_.Notify();
}

void StreamGate::Release() {
  if (std::optional<Task> task = lock_->TryPop()) lock_->Execute(*std::move(task));
  executor_.Notify();
}

}  // namespace cipherd::runtime::host
