#include "server/engine/program_pool.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace cipherd::engine {

absl::StatusOr<std::unique_ptr<ProgramPool>> ProgramPool::Create(const Program& program,
                                                                 const ProgramBinding& binding,
                                                                 const ServingSettings& settings,
                                                                 runtime::Device& device,
                                                                 runtime::Stream& stream) {
  std::unique_ptr<ProgramPool> result(new ProgramPool(settings.instances));
  for (const int batch_size : settings.batch_sizes) {
    std::vector<std::unique_ptr<ProgramInstance>> built;
    built.reserve(settings.instances);
    for (int i = 0; i < settings.instances; ++i) {
      CIPHERD_ASSIGN_OR_RETURN(
          std::unique_ptr<ProgramInstance> instance,
          ProgramInstance::Build(program, binding, batch_size, settings.warmup, device, stream));
      built.push_back(std::move(instance));
    }
    result->pools_[batch_size] = std::make_unique<LeasePool<ProgramInstance>>(
        absl::StrCat("instances of program '", program.info().name, "' for batches of ",
                     batch_size),
        std::move(built));
  }
  return result;
}

int ProgramPool::IdleBatchSize(int count) const {
  if (leased_count() >= most_leased_) return 0;
  // With fewer lent than there are of each size, one of each size is idle.
  const auto above = pools_.upper_bound(count);
  return above == pools_.begin() ? 0 : std::prev(above)->first;
}

std::optional<ProgramPool::Lease> ProgramPool::TryLease(int batch_size) {
  return pools_.at(batch_size)->TryLease();
}

size_t ProgramPool::size() const {
  size_t count = 0;
  for (const auto& [batch_size, pool] : pools_) count += pool->size();
  return count;
}

size_t ProgramPool::leased_count() const {
  size_t count = 0;
  for (const auto& [batch_size, pool] : pools_) count += pool->leased_count();
  return count;
}

absl::Status ProgramPool::Close() {
  absl::Status status;
  for (const auto& [batch_size, pool] : pools_) status.Update(pool->Close());
  return status;
}

}  // namespace cipherd::engine
