// An engine on several devices of the host that fail when a test says so.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "tests/server/engine/engine_fixture.h"
#include "tests/testing/fault_device.h"

namespace cipherd::engine::testing {

// Of the two keys of a test's set.
inline constexpr int64_t kSetBytes = 2 * kWordCount * sizeof(uint64_t);

// One instance a device: what runs at once, runs on as many devices.
inline EngineOptions OneInstance() {
  EngineOptions options = SmallEngine();
  options.instances = 1;
  options.queue_capacity = 64;
  return options;
}

// Loading a set costs `cost`.
inline EngineOptions WithLoadCost(EngineOptions options, absl::Duration cost) {
  options.keys.load_bytes_per_second = kSetBytes / absl::ToDoubleSeconds(cost);
  return options;
}

// So long that nobody waits it out.
inline constexpr absl::Duration kForGood = absl::Hours(10);

class EngineDevicesTest : public EngineTest {
 protected:
  void StartOn(int device_count, const EngineOptions& options) {
    Engine::Devices devices;
    for (int i = 0; i < device_count; ++i) {
      ASSERT_OK_AND_ASSIGN(std::unique_ptr<runtime::Device> device,
                           cipherd::testing::OpenTestDevice("cpu:" + std::to_string(i)));
      auto faulty = std::make_unique<cipherd::testing::FaultDevice>(std::move(device));
      devices_.push_back(faulty.get());
      devices.push_back(std::move(faulty));
    }
    Start(std::move(devices), options);
    arrivals_at_start_ = gate_->arrivals();
  }

  // Runs of the program that have come to the gate.
  int arrivals() { return gate_->arrivals() - arrivals_at_start_; }
  // False where it does not come to be; then the gate is open, so that the test can end.
  bool Eventually(const std::function<bool()>& is_so) {
    const absl::Time give_up = absl::Now() + absl::Seconds(20);
    while (!is_so()) {
      if (absl::Now() > give_up) {
        gate_->Open();
        return false;
      }
      std::this_thread::yield();
    }
    return true;
  }
  // Every worker asks for work, which only those do whose threads have come so far: the state that
  // placement is decided by.
  void AwaitTakers() {
    const int workers = static_cast<int>(engine_->workers().size());
    ASSERT_TRUE(Eventually([&] { return engine_->scheduler().taking_count() == workers; }));
  }
  bool AwaitArrivals(int count) {
    return Eventually([&] { return arrivals() >= count; });
  }

  uint64_t loads(size_t device) { return engine_->key_residency(device).stats().loads; }
  uint64_t loads() {
    uint64_t sum = 0;
    for (size_t i = 0; i < devices_.size(); ++i) sum += loads(i);
    return sum;
  }
  int captures() {
    int sum = 0;
    for (cipherd::testing::FaultDevice* device : devices_)
      sum += device->call_count(cipherd::testing::FaultPoint::kBeginCapture);
    return sum;
  }
  size_t leased(size_t device) {
    size_t sum = 0;
    for (const auto& worker : engine_->workers()) {
      if (worker->device_index() == device) sum += worker->instance_counts(served()).leased;
    }
    return sum;
  }
  // Where a set of `tenant` is, and nobody else's; the one device that has loaded it.
  size_t DeviceOf(int tenant) {
    AwaitTakers();
    std::vector<uint64_t> before;
    for (size_t i = 0; i < devices_.size(); ++i) before.push_back(loads(i));
    EXPECT_TRUE(Run(tenant, 1)->is_correct());
    for (size_t i = 0; i < devices_.size(); ++i) {
      if (loads(i) > before[i]) return i;
    }
    ADD_FAILURE() << "loaded nowhere";
    return 0;
  }
  // As if they had never been used.
  void RenewKeys(int tenant) {
    ASSERT_OK(DropTestKeys(engine_->keys(), TenantName(tenant), TestKeySetId(tenant)));
    ASSERT_OK(testing::PutTestKeys(engine_->keys(), TenantName(tenant), TestKeySetId(tenant),
                                   static_cast<uint64_t>(tenant)));
  }

  ServingSettings Serving(const EngineOptions& options) override {
    ServingSettings settings = EngineTest::Serving(options);
    settings.batch_sizes = batch_sizes_;
    settings.max_batch_delay = max_batch_delay_;
    return settings;
  }

  std::vector<int> batch_sizes_ = {1};
  absl::Duration max_batch_delay_;
  // In the engine's order.
  std::vector<cipherd::testing::FaultDevice*> devices_;
  int arrivals_at_start_ = 0;
};

}  // namespace cipherd::engine::testing
