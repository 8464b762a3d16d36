// One line of standard error that is written over as work goes on.
//
//   StatusLine line;
//   line.Update("8 clients  interval 2");
//   line.Clear();
//
// Drawn on a terminal only, at most ten times a second; logs get nothing. Used by one thread.
#pragma once

#include <ostream>
#include <string>

#include "absl/time/time.h"
#include "client/terminal/progress_bar.h"
#include "core/base/clock.h"

namespace cipherd::client {

class StatusLine {
 public:
  // The same as a progress bar's.
  explicit StatusLine(ProgressBar::Options options = {});
  // Clears.
  ~StatusLine() { Clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  void Update(const std::string& text);
  // Leaves the line empty, for other output.
  void Clear();

 private:
  std::ostream& out_;
  const bool is_terminal_;
  const base::Clock& clock_;
  absl::Time last_drawn_ = absl::InfinitePast();
  bool is_drawn_ = false;
};

}  // namespace cipherd::client
