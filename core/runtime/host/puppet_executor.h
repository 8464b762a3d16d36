// Runs queues only when told to, on the thread that tells: the executor of the puppet device.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "core/runtime/host/executor.h"

namespace cipherd::runtime::host {

// What happens to everything that a blocking call does not need.
enum class PuppetOrder {
  kLate,   // it is left for later: as late as it may happen
  kEager,  // it is done before: as early as it may happen, given that nothing runs before the call
};

class PuppetExecutor final : public Executor {
 public:
  // With `advances_on_query`, each query that finds its point not passed runs one task, so that
  // loops of queries end.
  PuppetExecutor(PuppetOrder order, bool advances_on_query)
      : order_(order), advances_on_query_(advances_on_query) {}

  void Add(std::shared_ptr<TaskQueue> queue) override;
  void DrainAndRemove(const std::shared_ptr<TaskQueue>& queue) override;
  // Runs tasks until `point` has passed. Where nothing that it needs may run (a hold, or another
  // thread that runs it), blocks until that changes.
  void Await(const QueuePosition& point) override;
  bool Poll(const QueuePosition& point) override;
  void Notify() override;
  bool reverses_graphs() const override { return true; }

  // Runs the next task of `queue` where it waits for nothing. Whether it did.
  bool Step(TaskQueue& queue);
  // Runs one task of any queue that may run. Whether there was one.
  bool StepAny();

 private:
  // Runs one task that helps towards `point`, or in kEager anything else first. Whether it did.
  bool Advance(const QueuePosition& point);
  // The queues whose front tasks stand between now and `point`: its own, the one that this waits
  // for, and so on. The last of them may run, unless it is held.
  static std::vector<std::shared_ptr<TaskQueue>> ChainTo(const QueuePosition& point);
  // Newest first.
  std::vector<std::shared_ptr<TaskQueue>> Queues();

  const PuppetOrder order_;
  const bool advances_on_query_;

  std::mutex mu_;
  std::condition_variable changed_;
  uint64_t change_count_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<std::shared_ptr<TaskQueue>> queues_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cipherd::runtime::host
