// Pinned trees of one program, one for each request that may be between header and reply.
//
// All are allocated when the program is loaded, so that a request allocates nothing; an empty pool
// refuses the next request, and never falls back to unpinned memory. A lease holds storage for
// inputs and outputs together, so that a request that was let in cannot wait for memory later.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "core/runtime/device.h"
#include "server/engine/lease_pool.h"
#include "server/engine/program.h"

namespace cipherd::engine {

class PinnedPool {
 public:
  using Lease = LeasePool<EvaluationTrees>::Lease;

  // `count` pairs of trees from the pinned memory of `device`, which outlives the pool.
  // ResourceExhausted naming what was needed where the device's pinned budget does not hold them.
  static absl::StatusOr<std::unique_ptr<PinnedPool>> Create(const Program& program, int count,
                                                            runtime::Device& device);

  std::optional<Lease> TryLease() { return pool_.TryLease(); }

  size_t size() const { return pool_.size(); }
  size_t leased_count() const { return pool_.leased_count(); }
  int64_t bytes() const { return bytes_; }
  // Lends no more, waits for what is lent, and frees all; false after `timeout`.
  bool Drain(absl::Duration timeout) { return pool_.Drain(timeout); }
  absl::Status Close() { return pool_.Close(); }

 private:
  PinnedPool(std::string_view label, std::vector<std::unique_ptr<EvaluationTrees>> trees,
             int64_t bytes)
      : pool_(label, std::move(trees)), bytes_(bytes) {}

  LeasePool<EvaluationTrees> pool_;
  const int64_t bytes_;
};

}  // namespace cipherd::engine
