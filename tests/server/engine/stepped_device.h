// A puppet device behind a fault-injecting one, which remembers its streams by name, for tests that
// step the streams of a worker or fail them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/runtime/host/puppet_device.h"
#include "tests/testing/devices.h"
#include "tests/testing/fault_device.h"

namespace cipherd::engine::testing {

class SteppedDevice final : public runtime::Device {
 public:
  static std::unique_ptr<SteppedDevice> Open() {
    auto puppet = runtime::host::PuppetDevice::Open({}, cipherd::testing::SmallPools()).value();
    return std::unique_ptr<SteppedDevice>(new SteppedDevice(std::move(puppet)));
  }

  runtime::host::PuppetDevice& puppet() { return puppet_; }
  cipherd::testing::FaultDevice& faults() { return faults_; }
  // The puppet's stream that was created under `name`.
  runtime::Stream& stream(const std::string& name) {
    return cipherd::testing::FaultDevice::Unwrap(*streams_.at(name));
  }

  runtime::DeviceId id() const override { return faults_.id(); }
  const runtime::DeviceProperties& properties() const override { return faults_.properties(); }
  absl::StatusOr<std::unique_ptr<runtime::Stream>> CreateStream(std::string_view name) override {
    absl::StatusOr<std::unique_ptr<runtime::Stream>> stream = faults_.CreateStream(name);
    if (stream.ok()) streams_[std::string(name)] = stream->get();
    return stream;
  }
  absl::StatusOr<std::shared_ptr<runtime::Event>> CreateEvent() override {
    return faults_.CreateEvent();
  }
  absl::StatusOr<runtime::StoragePtr> Allocate(size_t bytes, runtime::Stream& stream) override {
    return faults_.Allocate(bytes, stream);
  }
  absl::StatusOr<runtime::StoragePtr> AllocatePinned(size_t bytes) override {
    return faults_.AllocatePinned(bytes);
  }
  runtime::MemoryStats device_memory_stats() const override {
    return faults_.device_memory_stats();
  }
  runtime::MemoryStats pinned_memory_stats() const override {
    return faults_.pinned_memory_stats();
  }
  void TrimMemory() override { faults_.TrimMemory(); }
  absl::Status health() const override { return faults_.health(); }
  absl::Status Synchronize() override { return faults_.Synchronize(); }

 private:
  explicit SteppedDevice(std::unique_ptr<runtime::host::PuppetDevice> puppet)
      : puppet_(*puppet), faults_(std::move(puppet)) {}

  runtime::host::PuppetDevice& puppet_;
  cipherd::testing::FaultDevice faults_;
  std::map<std::string, runtime::Stream*> streams_;
};

}  // namespace cipherd::engine::testing
