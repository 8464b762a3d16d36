// The instances of one program on one worker.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "server/engine/lease_pool.h"
#include "server/engine/program_instance.h"

namespace cipherd::engine {

// Each instance has one storage set and runs one request at a time, so `instances` bounds how many
// requests of the program are on the worker's streams. Thread-safe; Create blocks.
class ProgramPool {
 public:
  using Lease = LeasePool<ProgramInstance>::Lease;

  // `on_return` runs whenever an instance has become idle.
  static absl::StatusOr<std::unique_ptr<ProgramPool>> Create(
      const Program& program, const ProgramBinding& binding, int instances, int warmup,
      runtime::Device& device, runtime::Stream& stream, std::function<void()> on_return);

  std::optional<Lease> TryLease() { return pool_.TryLease(); }
  size_t size() const { return pool_.size(); }
  size_t leased_count() const { return pool_.leased_count(); }
  absl::Status Close() { return pool_.Close(); }

 private:
  ProgramPool(std::string_view label, std::vector<std::unique_ptr<ProgramInstance>> instances,
              std::function<void()> on_return)
      : pool_(label, std::move(instances), std::move(on_return)) {}

  LeasePool<ProgramInstance> pool_;
};

}  // namespace cipherd::engine
