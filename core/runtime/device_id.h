// Names of devices: "cpu:N" and "cuda:N".
#pragma once

#include <compare>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace cipherd::runtime {

// A device that has memory, streams, events and graphs of its own. Every `cpu:N` is the host's
// processor behind that interface; host memory itself is not on any device.
struct DeviceId {
  enum class Kind : uint8_t { kCpu, kCuda };

  Kind kind = Kind::kCpu;
  int ordinal = 0;

  auto operator<=>(const DeviceId&) const = default;

  // "cpu:0", "cuda:1".
  std::string ToString() const;

  // Accepts "cpu" (= cpu:0), "cpu:N", "cuda" (= cuda:0) and "cuda:N"; InvalidArgument otherwise.
  static absl::StatusOr<DeviceId> Parse(std::string_view text);
};

inline std::ostream& operator<<(std::ostream& out, const DeviceId& id) {
  return out << id.ToString();
}

}  // namespace cipherd::runtime
