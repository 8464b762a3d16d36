// The instances of one program on one worker: for each batch size as many graphs as batches may be
// on the worker's streams at once.
#pragma once

#include <map>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/engine/lease_pool.h"
#include "server/engine/program_instance.h"
#include "server/engine/serving_settings.h"

namespace cipherd::engine {

// Each instance has one storage set and runs one batch at a time. At most `settings.instances` are
// lent at once, whatever their sizes: with all of them busy requests queue up and the next batch
// grows. Thread-safe; leased by one thread. Create blocks.
class ProgramPool {
 public:
  using Lease = LeasePool<ProgramInstance>::Lease;

  static absl::StatusOr<std::unique_ptr<ProgramPool>> Create(const Program& program,
                                                             const ProgramBinding& binding,
                                                             const ServingSettings& settings,
                                                             runtime::Device& device,
                                                             runtime::Stream& stream);

  // The largest batch of at most `count` that could be leased now; 0 where none.
  int IdleBatchSize(int count) const;
  // Of a size that was captured.
  std::optional<Lease> TryLease(int batch_size);

  // Graphs, and those that are lent.
  size_t size() const;
  size_t leased_count() const;
  absl::Status Close();

 private:
  explicit ProgramPool(size_t most_leased) : most_leased_(most_leased) {}

  const size_t most_leased_;
  // By batch size.
  std::map<int, std::unique_ptr<LeasePool<ProgramInstance>>> pools_;
};

}  // namespace cipherd::engine
