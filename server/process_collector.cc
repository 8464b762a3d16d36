#include "server/process_collector.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <optional>
#include <sstream>
#include <string>

#include "server/metric_families.h"

namespace cipherd::server {
namespace {

using prometheus::MetricFamily;

struct ProcessStat {
  double cpu_seconds = 0;
  // Since the machine has started.
  double start_seconds = 0;
  double virtual_bytes = 0;
  double resident_bytes = 0;
};

// /proc/self/stat, proc(5). Fields are counted from 1 there, from 3 on after the name.
std::optional<ProcessStat> ReadStat() {
  std::ifstream file("/proc/self/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  // The name is in parentheses and may hold anything.
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return std::nullopt;
  std::istringstream fields(text.substr(name_end + 1));
  std::string state;
  fields >> state;
  double values[21] = {};  // 4 to 24
  for (double& value : values) fields >> value;
  if (!fields) return std::nullopt;
  const auto field = [&](int number) { return values[number - 4]; };
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  const auto page_bytes = static_cast<double>(sysconf(_SC_PAGESIZE));
  return ProcessStat{.cpu_seconds = (field(14) + field(15)) / ticks,
                     .start_seconds = field(22) / ticks,
                     .virtual_bytes = field(23),
                     .resident_bytes = field(24) * page_bytes};
}

// Unix time at which the machine has started.
std::optional<double> ReadBootTime() {
  std::ifstream file("/proc/stat");
  for (std::string key; file >> key;
       file.ignore(std::numeric_limits<std::streamsize>::max(), '\n')) {
    double seconds = 0;
    if (key == "btime" && file >> seconds) return seconds;
  }
  return std::nullopt;
}

std::optional<double> ReadStartTime() {
  const std::optional<double> boot = ReadBootTime();
  const std::optional<ProcessStat> stat = ReadStat();
  if (!boot.has_value() || !stat.has_value()) return std::nullopt;
  return *boot + stat->start_seconds;
}

std::optional<double> CountOpenFiles() {
  std::error_code error;
  std::filesystem::directory_iterator entry("/proc/self/fd", error);
  double count = 0;
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) ++count;
  // One is that of the directory itself.
  return error ? std::nullopt : std::optional(count - 1);
}

}  // namespace

ProcessCollector::ProcessCollector() : start_seconds_(ReadStartTime()) {}

std::vector<MetricFamily> ProcessCollector::Collect() const {
  std::vector<MetricFamily> families;
  if (const std::optional<ProcessStat> stat = ReadStat()) {
    families.push_back(
        Counter("process_cpu_seconds_total", "CPU time of all threads, user and system")
            .Add({}, stat->cpu_seconds)
            .Take());
    families.push_back(
        Gauge("process_virtual_memory_bytes", "Address space").Add({}, stat->virtual_bytes).Take());
    families.push_back(Gauge("process_resident_memory_bytes", "Resident memory")
                           .Add({}, stat->resident_bytes)
                           .Take());
  }
  if (start_seconds_.has_value()) {
    families.push_back(Gauge("process_start_time_seconds", "Unix time of the start")
                           .Add({}, *start_seconds_)
                           .Take());
  }
  if (const std::optional<double> open = CountOpenFiles()) {
    families.push_back(Gauge("process_open_fds", "Open files").Add({}, *open).Take());
  }
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    families.push_back(Gauge("process_max_fds", "Bound of process_open_fds")
                           .Add({}, static_cast<double>(limit.rlim_cur))
                           .Take());
  }
  return families;
}

}  // namespace cipherd::server
