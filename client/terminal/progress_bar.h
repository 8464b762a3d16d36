// A progress bar for what takes longer than a second.
//
//   ProgressBar bar("uploading keys", total_bytes, ProgressUnit::kBytes);
//   for (...) bar.Update(sent_bytes);
//   bar.Finish();
//
// On a terminal the bar is drawn once a second has passed, and again at most ten times a second:
//   uploading keys  [##########----------]  50%  12.0 of 24.0 MiB  eta 3 s
// Elsewhere (a log, a pipe) nothing but the line of Finish is written, where the work took longer
// than a second:
//   uploading keys: 24.0 MiB in 6.1 s
// Thread-safe.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/clock.h"

namespace cipherd::client {

enum class ProgressUnit : uint8_t { kItems, kBytes };

// "17", "3.4 MiB".
std::string FormatAmount(double amount, ProgressUnit unit);

class ProgressBar {
 public:
  struct Options {
    std::ostream* out = nullptr;  // null: standard error
    // Redraw in place. By default, whether standard error is a terminal.
    bool is_terminal = StandardErrorIsTerminal();
    const base::Clock* clock = &base::Clock::Real();
  };

  ProgressBar(std::string label, int64_t total, ProgressUnit unit, Options options);
  ProgressBar(std::string label, int64_t total, ProgressUnit unit)
      : ProgressBar(std::move(label), total, unit, Options()) {}
  // Ends the line of an unfinished bar.
  ~ProgressBar();

  // `done` of the total are done; a smaller one than before is ignored, so that threads may report
  // out of order.
  void Update(int64_t done);
  void Finish();

 private:
  static bool StandardErrorIsTerminal();
  std::string Line(absl::Duration elapsed) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const std::string label_;
  const int64_t total_;
  const ProgressUnit unit_;
  const Options options_;
  const absl::Time start_;

  absl::Mutex mu_;
  int64_t done_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Time last_drawn_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  bool is_drawn_ ABSL_GUARDED_BY(mu_) = false;
  bool is_finished_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace cipherd::client
