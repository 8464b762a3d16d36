#include "core/runtime/host_memory_limit.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "core/base/control_group.h"

namespace cipherd::runtime {
namespace {

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::optional<size_t> ParseBytes(const std::string& text) {
  uint64_t bytes = 0;
  if (!absl::SimpleAtoi(text, &bytes)) return std::nullopt;
  return bytes;
}

}  // namespace

std::optional<size_t> ParseMemAvailable(const std::string& meminfo) {
  std::istringstream lines(meminfo);
  for (std::string line; std::getline(lines, line);) {
    absl::string_view rest = line;
    if (!absl::ConsumePrefix(&rest, "MemAvailable:") || !absl::ConsumeSuffix(&rest, " kB")) {
      continue;
    }
    const std::optional<size_t> kib = ParseBytes(std::string(rest));
    if (kib.has_value() && *kib <= SIZE_MAX / 1024) return *kib * 1024;
  }
  return std::nullopt;
}

std::optional<size_t> ParseGroupHeadroom(const std::string& max, const std::string& current) {
  const std::optional<size_t> limit = ParseBytes(max);
  const std::optional<size_t> used = ParseBytes(current);
  if (!limit.has_value() || !used.has_value()) return std::nullopt;
  return *limit - std::min(*limit, *used);
}

std::optional<size_t> AvailableHostBytes() {
  std::optional<size_t> available = ParseMemAvailable(ReadText("/proc/meminfo"));
  const std::optional<size_t> headroom = ParseGroupHeadroom(
      base::ReadControlGroupFile("memory.max"), base::ReadControlGroupFile("memory.current"));
  if (!headroom.has_value()) return available;
  return available.has_value() ? std::min(*available, *headroom) : headroom;
}

}  // namespace cipherd::runtime
