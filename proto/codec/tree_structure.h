// Step 1 of tree_admission.h: secret keys, counts, nesting, names and byte caps of a whole tree,
// before anything of it is believed or copied. Internal to the codec.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cipherd/v1/value.pb.h"
#include "proto/codec/wire_limits.h"

namespace cipherd::codec::internal {

// What is left of the limits on one tree.
class StructureBudget {
 public:
  StructureBudget(const WireLimits& limits, uint64_t max_bytes)
      : limits_(limits), max_bytes_(max_bytes) {}

  // Counts a node with `nesting` containers around it.
  absl::Status AddNode(int nesting, std::string_view path);
  absl::Status AddBytes(uint64_t bytes, std::string_view path);
  const WireLimits& limits() const { return limits_; }
  uint64_t bytes() const { return bytes_; }

 private:
  const WireLimits& limits_;
  const uint64_t max_bytes_;
  int node_count_ = 0;
  uint64_t bytes_ = 0;
};

// Returns the sum of the declared bytes, which is at most `max_bytes`.
absl::StatusOr<uint64_t> CheckTreeStructure(const v1::ValueTree& message, uint64_t max_bytes,
                                            const WireLimits& limits, std::string_view path);

}  // namespace cipherd::codec::internal
