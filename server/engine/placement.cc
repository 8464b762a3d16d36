#include "server/engine/placement.h"

#include <tuple>

namespace cipherd::engine {
namespace {

bool IsEligible(const DeviceLoad& device, const Demand& demand) {
  const bool is_worth_waiting_for =
      device.is_serving && device.has_keys && demand.waited < demand.load_cost;
  return device.can_start || is_worth_waiting_for;
}

absl::Duration CostOf(const DeviceLoad& device, const Demand& demand) {
  absl::Duration cost = device.backlog;
  if (!device.has_keys) cost += demand.load_cost;
  if (!device.can_start) cost += demand.run_time * demand.batches_behind;
  return cost;
}

}  // namespace

std::optional<size_t> ChooseDevice(std::span<const DeviceLoad> devices, const Demand& demand) {
  const auto rank = [&](size_t i) {
    const DeviceLoad& device = devices[i];
    return std::tuple(CostOf(device, demand), !device.has_keys, device.in_flight, device.key_bytes);
  };
  std::optional<size_t> best;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (!IsEligible(devices[i], demand)) continue;
    if (!best.has_value() || rank(i) < rank(*best)) best = i;
  }
  return best;
}

}  // namespace cipherd::engine
