// A version of a program that the engine serves: its description and settings, the trees of its
// requests, what its instances are captured from, whether it is ready, and how it has run.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
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

  // Constants and example on the device, from loading to unloading; else null.
  std::shared_ptr<const ProgramBinding> binding() const ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    return binding_;
  }
  void set_binding(std::shared_ptr<const ProgramBinding> binding) ABSL_LOCKS_EXCLUDED(mu_) {
    absl::MutexLock lock(&mu_);
    binding_.swap(binding);
  }
  bool is_loaded() const { return binding() != nullptr; }

  // Loaded, and a worker has its instances, each with a verified first replay.
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
  std::shared_ptr<const ProgramBinding> binding_ ABSL_GUARDED_BY(mu_);
  std::atomic<bool> is_ready_ = false;
  std::atomic<bool> is_retired_ = false;
};

}  // namespace cipherd::engine
