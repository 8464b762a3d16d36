// A program that the engine serves: its description, the trees of its requests, and whether it is
// ready.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

#include "server/engine/pinned_pool.h"
#include "server/engine/program.h"

namespace cipherd::engine {

class ServedProgram {
 public:
  ServedProgram(std::shared_ptr<const Program> program, std::unique_ptr<PinnedPool> trees)
      : program_(std::move(program)), trees_(std::move(trees)) {}

  const Program& program() const { return *program_; }
  const ProgramInfo& info() const { return program_->info(); }
  PinnedPool& trees() const { return *trees_; }

  // Every worker has its instances, each with a verified first replay.
  bool is_ready() const { return is_ready_.load(std::memory_order_acquire); }
  void set_ready(bool ready) { is_ready_.store(ready, std::memory_order_release); }

 private:
  const std::shared_ptr<const Program> program_;
  const std::unique_ptr<PinnedPool> trees_;
  std::atomic<bool> is_ready_ = false;
};

}  // namespace cipherd::engine
