// Waiting without sleeping, for what is about to happen.
#pragma once

#include <chrono>

#include "absl/time/time.h"

namespace cipherd::engine {

// Tells the processor that this thread spins.
inline void PauseWhileSpinning() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Asks `is_done` again and again, for up to `longest`. What it said last.
template <typename Predicate>
bool SpinUntil(Predicate is_done, absl::Duration longest) {
  const auto end = std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(longest);
  while (!is_done()) {
    if (std::chrono::steady_clock::now() >= end) return is_done();
    for (int i = 0; i < 8; ++i) PauseWhileSpinning();
  }
  return true;
}

}  // namespace cipherd::engine
