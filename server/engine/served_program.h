// A version of a program that the engine serves: its description and settings, the trees of its
// requests, what its instances are captured from, whether it is ready, and how it has run.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/engine/pinned_pool.h"
#include "server/engine/program.h"
#include "server/engine/run_counts.h"
#include "server/engine/serving_settings.h"

namespace cipherd::engine {

class ServedProgram {
 public:
  ServedProgram(std::shared_ptr<const Program> program, std::unique_ptr<PinnedPool> trees,
                ServingSettings settings = {})
      : program_(std::move(program)), trees_(std::move(trees)), settings_(std::move(settings)) {}

  const Program& program() const { return *program_; }
  const ProgramInfo& info() const { return program_->info(); }
  const ServingSettings& settings() const { return settings_; }
  PinnedPool& trees() const { return *trees_; }
  RunCounts& run_counts() { return run_counts_; }

  using Bindings = std::vector<std::shared_ptr<const ProgramBinding>>;
  // Constants and example on device number `device` of the engine, from loading to unloading; else,
  // and on a device that had failed when the program was loaded, null.
  std::shared_ptr<const ProgramBinding> binding(size_t device) const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return device < bindings_.size() ? bindings_[device] : nullptr;
  }
  // Of all devices; none: unloaded.
  void set_bindings(Bindings bindings) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    bindings_.swap(bindings);
  }
  bool is_loaded() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return !bindings_.empty();
  }

  // About what a batch takes on a device: a mean that forgets, zero before the first. Kept where
  // there are several devices to choose from.
  absl::Duration batch_time() const {
    return absl::Seconds(batch_seconds_.load(std::memory_order_relaxed));
  }
  void AddBatchTime(double seconds) {
    constexpr double kWeight = 0.25;
    // One that another thread adds at the same time may be lost.
    const double former = batch_seconds_.load(std::memory_order_relaxed);
    batch_seconds_.store(former == 0 ? seconds : former + kWeight * (seconds - former),
                         std::memory_order_relaxed);
  }

  // Loaded, and a worker of some device has its instances, each with a verified first replay.
  bool is_ready() const { return is_ready_.load(std::memory_order_acquire) && !is_retired(); }
  void set_ready(bool ready) { is_ready_.store(ready, std::memory_order_release); }

  // On its way out: never ready again.
  bool is_retired() const { return is_retired_.load(std::memory_order_acquire); }
  void set_retired() { is_retired_.store(true, std::memory_order_release); }

 private:
  const std::shared_ptr<const Program> program_;
  const std::unique_ptr<PinnedPool> trees_;
  const ServingSettings settings_;
  RunCounts run_counts_;
  mutable absl::Mutex mu_;
  Bindings bindings_ ABSL_GUARDED_BY(mu_);
  std::atomic<double> batch_seconds_ = 0;
  std::atomic<bool> is_ready_ = false;
  std::atomic<bool> is_retired_ = false;
};

}  // namespace cipherd::engine
