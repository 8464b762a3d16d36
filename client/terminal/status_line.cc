#include "client/terminal/status_line.h"

#include <iostream>

namespace cipherd::client {
namespace {

constexpr absl::Duration kRedrawAfter = absl::Milliseconds(100);

}  // namespace

StatusLine::StatusLine(ProgressBar::Options options)
    : out_(options.out != nullptr ? *options.out : std::cerr),
      is_terminal_(options.is_terminal),
      clock_(*options.clock) {}

void StatusLine::Update(const std::string& text) {
  const absl::Time now = clock_.Now();
  if (!is_terminal_ || now - last_drawn_ < kRedrawAfter) return;
  // Return to the first column, draw, erase what a longer line left.
  out_ << "\r" << text << "\x1b[K" << std::flush;
  last_drawn_ = now;
  is_drawn_ = true;
}

void StatusLine::Clear() {
  if (is_drawn_) out_ << "\r\x1b[K" << std::flush;
  is_drawn_ = false;
}

}  // namespace cipherd::client
