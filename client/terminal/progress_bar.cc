#include "client/terminal/progress_bar.h"

#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace cipherd::client {
namespace {

constexpr absl::Duration kShowAfter = absl::Seconds(1);
constexpr absl::Duration kRedrawAfter = absl::Milliseconds(100);
constexpr int kBarCells = 24;

}  // namespace

std::string FormatAmount(double amount, ProgressUnit unit) {
  if (unit == ProgressUnit::kItems) return absl::StrFormat("%.0f", amount);
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t i = 0;
  while (amount >= 1024 && i + 1 < std::size(kUnits)) {
    amount /= 1024;
    ++i;
  }
  return absl::StrFormat("%.*f %s", i == 0 ? 0 : 1, amount, kUnits[i]);
}

bool ProgressBar::StandardErrorIsTerminal() { return isatty(STDERR_FILENO) == 1; }

ProgressBar::ProgressBar(std::string label, int64_t total, ProgressUnit unit, Options options)
    : label_(std::move(label)),
      total_(std::max<int64_t>(total, 1)),
      unit_(unit),
      options_(options.out != nullptr ? options
                                      : Options{&std::cerr, options.is_terminal, options.clock}),
      start_(options_.clock->Now()) {}

ProgressBar::~ProgressBar() {
  absl::MutexLock lock(&mu_);
  if (is_drawn_ && !is_finished_) *options_.out << "\n";
}

void ProgressBar::Update(int64_t done) {
  absl::MutexLock lock(&mu_);
  if (is_finished_) return;
  done_ = std::clamp(done, done_, total_);
  const absl::Time now = options_.clock->Now();
  if (!options_.is_terminal || now - start_ < kShowAfter || now - last_drawn_ < kRedrawAfter)
    return;
  // Return to the first column, draw, erase what a longer line left.
  *options_.out << "\r" << Line(now - start_) << "\x1b[K" << std::flush;
  last_drawn_ = now;
  is_drawn_ = true;
}

void ProgressBar::Finish() {
  absl::MutexLock lock(&mu_);
  if (is_finished_) return;
  is_finished_ = true;
  const absl::Duration elapsed = options_.clock->Now() - start_;
  if (!is_drawn_ && elapsed < kShowAfter) return;
  if (is_drawn_) *options_.out << "\r\x1b[K";
  *options_.out << absl::StrFormat("%s: %s in %.1f s\n", label_, FormatAmount(total_, unit_),
                                   absl::ToDoubleSeconds(elapsed))
                << std::flush;
}

std::string ProgressBar::Line(absl::Duration elapsed) const {
  const double share = static_cast<double>(done_) / static_cast<double>(total_);
  const int cells = static_cast<int>(share * kBarCells);
  std::string line =
      absl::StrFormat("%s  [%s%s] %3d%%  %s of %s", label_, std::string(cells, '#'),
                      std::string(kBarCells - cells, '-'), static_cast<int>(share * 100),
                      FormatAmount(done_, unit_), FormatAmount(total_, unit_));
  if (done_ > 0) {
    absl::StrAppend(
        &line, "  eta ",
        absl::StrFormat("%.0f s", absl::ToDoubleSeconds(elapsed) * (1 - share) / share));
  }
  return line;
}

}  // namespace cipherd::client
