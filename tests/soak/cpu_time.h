// How busy a machine is with other things than what a test measures.
//
//   const CpuTime before = CpuTime::Now({daemon_pid});
//   ...
//   if (CpuTime::Now({daemon_pid}).ShareOfOthersSince(before) > 0.05) ...   // says nothing
#pragma once

#include <vector>

namespace cipherd::testing {

// In seconds since some moment of the past, over all cores.
struct CpuTime {
  // Work and idleness of the machine, time that its host took away included.
  double total = 0;
  double idle = 0;
  // Work of this process and the given ones.
  double own = 0;

  static CpuTime Now(const std::vector<int>& pids);

  // In [0, 1].
  double ShareOfOthersSince(const CpuTime& before) const;
};

}  // namespace cipherd::testing
