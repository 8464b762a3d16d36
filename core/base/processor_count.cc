#include "core/base/processor_count.h"

#include <sched.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <sstream>
#include <thread>

#include "core/base/control_group.h"

namespace cipherd::base {

std::optional<int> ParseProcessorQuota(const std::string& text) {
  std::istringstream words(text);
  // Microseconds of processor time in each period.
  int64_t quota = 0;
  int64_t period = 0;
  // "max" in place of a quota is none.
  if (!(words >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
  const int64_t count = quota / period + (quota % period != 0 ? 1 : 0);
  return static_cast<int>(std::min<int64_t>(count, std::numeric_limits<int>::max()));
}

int ProcessorCount() {
  cpu_set_t processors;
  int count = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  if (sched_getaffinity(0, sizeof(processors), &processors) == 0) count = CPU_COUNT(&processors);
  return std::min(count, ParseProcessorQuota(ReadControlGroupFile("cpu.max")).value_or(count));
}

}  // namespace cipherd::base
