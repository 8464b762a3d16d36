// Where a request runs, of several devices: the rule, as a function of what each has to do.
//
// Workers pull, so the rule is asked by each device for itself ("is it me?"), and every device
// comes to the same answer. It is the device that will be done first, as far as one can tell:
//
//   what it has under way + what copying the keys costs, where they are not there
//                         + what the tenant has waiting, where it has no idle instance now
//
// A device that has the keys and no idle instance is waited for, but for no longer than copying
// them costs: whoever waits so long before it pays never takes more than twice what was best. So
// requests go where their keys are; a tenant whose device is behind by more than a copy gets a
// second one; and no device stays idle for longer than that while requests wait that it could run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/time/time.h"

namespace cipherd::engine {

// One device, as a request sees it.
struct DeviceLoad {
  // Has captured the request's program, and takes requests.
  bool is_serving = false;
  // Serves, and a worker asks for work now, has an idle instance and finds the keys there or room
  // for them.
  bool can_start = false;
  // The request's keys are there or on their way; true for a program that reads none.
  bool has_keys = false;
  // About what the batches under way there will take, and how many they are.
  absl::Duration backlog;
  int in_flight = 0;
  // Of key sets that are there, whoever's.
  int64_t key_bytes = 0;
};

// What a request asks of a device.
struct Demand {
  // Of copying its keys to a device.
  absl::Duration load_cost;
  // Of one batch of its program.
  absl::Duration run_time;
  // Batches that its tenant has waiting behind it.
  int batches_behind = 0;
  // Since it was queued.
  absl::Duration waited;
};

// The device of `devices` that is to run it, or to be waited for; nothing where none can. Of equals
// the one that has its keys, then with fewer batches, then with fewer keys of anybody's, then the
// first.
std::optional<size_t> ChooseDevice(std::span<const DeviceLoad> devices, const Demand& demand);

}  // namespace cipherd::engine
