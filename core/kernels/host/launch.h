// How host launchers put their loops on a stream.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/kernels/automorphism_body.h"
#include "core/kernels/kernel_table.h"
#include "core/ring/ring_tables.h"
#include "core/runtime/host/task_stream.h"
#include "core/runtime/host/thread_team.h"

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

// Where the entries of a(X^g) in the NTT domain come from. Made when the work is enqueued, and kept
// by it: a captured launch does not make it again at each replay.
using PermutationPtr = std::shared_ptr<const std::vector<uint32_t>>;
inline PermutationPtr AutomorphismOf(uint32_t galois_element, int log_n) {
  return std::make_shared<const std::vector<uint32_t>>(
      AutomorphismNttSources(galois_element, log_n));
}

// How much there is to do for each word of a limb.
enum class Work {
  kLight,  // a few instructions
  kHeavy,  // tens: a transform, a sum over digits
};

// Calls body(outer, limb, constants of the limb's prime) for every limb of `outer_count`
// polynomials, on the threads of the process where there is enough to do.
template <class Body>
void ForEachLimb(const ring::RingTables& ring, const LimbPrimes& limbs, int64_t outer_count,
                 Work work, const Body& body) {
  // Below these, waking another thread takes longer than it saves.
  const int64_t shared_words = int64_t{1} << (work == Work::kHeavy ? 14 : 18);
  const int64_t count = outer_count * limbs.count;
  const auto visit = [&](int64_t i) {
    const int64_t outer = i / limbs.count;
    const auto limb = static_cast<int>(i % limbs.count);
    body(outer, limb, ring.primes[limbs.prime[limb]]);
  };
  if (count << ring.log_n < shared_words) {
    for (int64_t i = 0; i < count; ++i) visit(i);
  } else {
    runtime::host::ThreadTeam::OfProcess().ForEach(count, visit);
  }
}

}  // namespace cipherd::kernels::host
