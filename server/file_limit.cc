#include "server/file_limit.h"

#include <sys/resource.h>

#include <algorithm>

#include "spdlog/spdlog.h"

namespace cipherd::server {
namespace {

// Files of programs and keys that are being read, the health port's connections, scrapes, logs.
constexpr uint64_t kOtherFiles = 512;

}  // namespace

ConnectionLimits WithinFileLimit(const ConnectionLimits& wanted) {
  const uint64_t needed = static_cast<uint64_t>(wanted.max_connections) + kOtherFiles;
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  if (limit.rlim_cur < needed && limit.rlim_cur < limit.rlim_max) {
    rlimit raised = limit;
    raised.rlim_cur = std::min<rlim_t>(needed, limit.rlim_max);
    if (setrlimit(RLIMIT_NOFILE, &raised) == 0) limit = raised;
  }
  const ConnectionLimits limits = WithinFileLimit(wanted, limit.rlim_cur);
  if (limits.max_connections < wanted.max_connections) {
    spdlog::warn("at most {} connections instead of {}, since {} files may be open (RLIMIT_NOFILE)",
                 limits.max_connections, wanted.max_connections, limit.rlim_cur);
  }
  return limits;
}

ConnectionLimits WithinFileLimit(const ConnectionLimits& wanted, uint64_t max_files) {
  const uint64_t left = max_files - std::min(kOtherFiles, max_files / 2);
  ConnectionLimits limits = wanted;
  limits.max_connections = static_cast<int>(std::min<uint64_t>(
      static_cast<uint64_t>(limits.max_connections), std::max<uint64_t>(left, 1)));
  return limits;
}

}  // namespace cipherd::server
