// How host launchers put their loops on a stream.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "core/kernels/kernel_table.h"
#include "core/ring/ring_tables.h"
#include "core/runtime/host/task_stream.h"

namespace cipherd::kernels::host {

// Enqueues `body`, which captures its arguments by value. Internal where `stream` is not of a
// host-side device.
template <class Body>
absl::Status Launch(std::string_view name, runtime::Stream& stream, Body body) {
  auto* tasks = dynamic_cast<runtime::host::TaskStream*>(&stream);
  if (tasks == nullptr) {
    return absl::InternalError("host kernel launched on a stream of another kind of device");
  }
  return tasks->Submit(name, [body = std::move(body)]() {
    body();
    return absl::OkStatus();
  });
}

// Calls body(outer, limb, constants of the limb's prime) for every limb of `outer_count`
// polynomials.
template <class Body>
void ForEachLimb(const ring::RingTables& ring, const LimbPrimes& limbs, int64_t outer_count,
                 const Body& body) {
  for (int64_t outer = 0; outer < outer_count; ++outer) {
    for (int limb = 0; limb < limbs.count; ++limb) {
      body(outer, limb, ring.primes[limbs.prime[limb]]);
    }
  }
}

}  // namespace cipherd::kernels::host
