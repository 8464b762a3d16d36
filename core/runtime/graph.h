// A captured schedule of device work, replayed by one launch.
//
// A graph bakes the addresses and arguments that it saw; each launch reads the bytes which are at
// those addresses then. Storage allocated on the capturing streams during capture comes from a pool
// which the graph reserves until it is destroyed, also after its owners have let go. Launches of
// one graph must not overlap: the second launch is enqueued behind the first by the caller's stream
// order.
#pragma once

#include <cstddef>

#include "absl/status/status.h"

namespace cipherd::runtime {

class Stream;

class Graph {
 public:
  // Waits until its launches have completed, then gives its pool back to the device.
  virtual ~Graph() = default;

  // Enqueues one replay on `stream` (of the graph's device, not capturing). Does not synchronise.
  virtual absl::Status Launch(Stream& stream) = 0;

  // FailedPrecondition, naming the address, where a block outside the graph's pool that captured
  // work reads or writes has been freed since. Costs one check per such block.
  virtual absl::Status CheckLiveness() const = 0;

  // Kernels, copies, fills and host functions.
  virtual size_t node_count() const = 0;
  // Bytes that the graph reserves in the device's pool.
  virtual size_t pool_bytes() const = 0;
  // cudaGraphExec_t on CUDA; null on the CPU device. Launching it directly bypasses every check.
  virtual void* native_handle() const = 0;
};

}  // namespace cipherd::runtime
