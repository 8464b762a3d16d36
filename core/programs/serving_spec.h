// What the directory of a program says about how it is to be served; absent where that is left to
// the daemon. proto/codec reads it (serving.textproto), the daemon makes settings of it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace cipherd::programs {

struct ServingSpec {
  std::optional<int> instances;
  // Empty: left to the daemon.
  std::vector<int> batch_sizes;
  std::optional<double> max_batch_delay_seconds;
  std::optional<int> queue_capacity;
  std::optional<int> priority;
  std::optional<double> default_timeout_seconds;
  std::optional<double> longest_timeout_seconds;
  std::optional<int> warmup;
  std::optional<int64_t> constant_memory_bytes;

  bool operator==(const ServingSpec&) const = default;
};

}  // namespace cipherd::programs
