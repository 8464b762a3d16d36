#include "tests/soak/cpu_time.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace cipherd::testing {
namespace {

// User and system time, the 14th and 15th field of /proc/pid/stat.
double TicksOf(int pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  // The second field, a name in parentheses, may hold blanks.
  std::istringstream fields(line.substr(std::min(line.size(), line.rfind(')') + 1)));
  std::string skipped;
  for (int i = 3; i < 14; ++i) fields >> skipped;
  double user = 0;
  double system = 0;
  fields >> user >> system;
  return user + system;
}

}  // namespace

CpuTime CpuTime::Now(const std::vector<int>& pids) {
  const double ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  CpuTime time;
  time.own = TicksOf(getpid()) / ticks_per_second;
  for (const int pid : pids) time.own += TicksOf(pid) / ticks_per_second;
  std::ifstream file("/proc/stat");
  std::string name;
  file >> name;
  // user nice system idle iowait irq softirq steal
  for (int i = 0; i < 8; ++i) {
    double ticks = 0;
    file >> ticks;
    time.total += ticks / ticks_per_second;
    if (i == 3 || i == 4) time.idle += ticks / ticks_per_second;
  }
  return time;
}

double CpuTime::ShareOfOthersSince(const CpuTime& before) const {
  const double elapsed = total - before.total;
  if (elapsed <= 0) return 1;
  const double others = elapsed - (idle - before.idle) - (own - before.own);
  return std::clamp(others / elapsed, 0.0, 1.0);
}

}  // namespace cipherd::testing
