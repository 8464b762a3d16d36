#include "server/engine/device_loads.h"

#include <optional>

#include "server/engine/worker.h"

namespace cipherd::engine {

DeviceLoads::Charge::Charge(Device* device, int64_t nanoseconds)
    : device_(device), nanoseconds_(nanoseconds) {
  device_->backlog_nanoseconds.fetch_add(nanoseconds_, std::memory_order_relaxed);
  device_->in_flight.fetch_add(1, std::memory_order_relaxed);
}

DeviceLoads::Charge& DeviceLoads::Charge::operator=(Charge&& other) noexcept {
  if (this != &other) {
    Release();
    device_ = std::exchange(other.device_, nullptr);
    nanoseconds_ = other.nanoseconds_;
  }
  return *this;
}

void DeviceLoads::Charge::Release() {
  Device* const device = std::exchange(device_, nullptr);
  if (device == nullptr) return;
  device->backlog_nanoseconds.fetch_sub(nanoseconds_, std::memory_order_relaxed);
  device->in_flight.fetch_sub(1, std::memory_order_relaxed);
}

DeviceLoads::DeviceLoads(const std::vector<std::unique_ptr<KeyResidency>>& keys,
                         double key_load_bytes_per_second, const base::Clock& clock)
    : key_load_bytes_per_second_(key_load_bytes_per_second), clock_(clock) {
  for (const std::unique_ptr<KeyResidency>& residency : keys) {
    devices_.push_back(std::make_unique<Device>(*residency));
  }
}

void DeviceLoads::AddWorker(size_t device, const Worker& worker) {
  devices_[device]->workers.push_back(&worker);
}

DeviceLoads::View DeviceLoads::Look(const ServedProgram& program) const {
  View view(*this, clock_.Now());
  for (const std::unique_ptr<Device>& device : devices_) {
    DeviceLoad& load = view.devices_.emplace_back();
    load.backlog = absl::Nanoseconds(device->backlog_nanoseconds.load(std::memory_order_relaxed));
    load.in_flight = device->in_flight.load(std::memory_order_relaxed);
    for (const Worker* worker : device->workers) {
      const Worker::Readiness readiness = worker->ReadinessFor(program);
      load.is_serving |= readiness.is_serving;
      load.can_start |= readiness.can_start;
    }
  }
  return view;
}

DeviceLoads::Decision DeviceLoads::View::Decide(size_t device, const Request& request,
                                                size_t waiting, absl::Duration claimed) const {
  const ServedProgram& program = request.program();
  const KeySetInfo& keys = *request.keys()->info;
  const int largest_batch = program.settings().largest_batch();
  const Demand demand = {
      .load_cost =
          absl::Seconds(static_cast<double>(keys.bytes) / loads_.key_load_bytes_per_second_),
      .run_time = program.batch_time(),
      .batches_behind = (static_cast<int>(waiting) - 1 + largest_batch - 1) / largest_batch,
      .waited = now_ - request.queued_at()};
  auto devices = devices_;
  for (size_t i = 0; i < devices.size(); ++i) {
    const KeyResidency::Standing standing = loads_.devices_[i]->keys.StandingOf(keys);
    devices[i].has_keys = standing.is_here || keys.bytes == 0;
    devices[i].key_bytes = standing.used_bytes;
    devices[i].can_start &= standing.has_room;
  }
  devices[device].backlog += claimed;
  const std::optional<size_t> chosen = ChooseDevice(devices, demand);
  Decision decision;
  decision.is_here = !chosen.has_value() || *chosen == device;
  if (!devices[device].has_keys) decision.load_cost = demand.load_cost;
  if (!decision.is_here && !devices[*chosen].can_start) {
    decision.look_again = request.queued_at() + demand.load_cost;
  }
  return decision;
}

DeviceLoads::Charge DeviceLoads::Begin(size_t device, absl::Duration expected) {
  return Charge(devices_[device].get(), absl::ToInt64Nanoseconds(expected));
}

}  // namespace cipherd::engine
