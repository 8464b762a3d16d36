#include "proto/codec/wire_limits.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace cipherd::codec {
namespace {

absl::Status CheckRange(const char* field, uint64_t value, uint64_t least, uint64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("limits.", field, ": expected ", least, " to ", most, ", got ", value));
}

absl::Status CheckCount(const char* field, int value, int most) {
  if (value >= 1 && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("limits.", field, ": expected 1 to ", most, ", got ", value));
}

// A limit that the peer does not state is not one.
uint64_t Smaller(uint64_t stated, uint64_t own) {
  return stated == 0 ? own : std::min(stated, own);
}

}  // namespace

absl::Status WireLimits::Validate() const {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  constexpr uint64_t kMost = uint64_t{1} << 62;  // sums of two stay below 2^63
  for (const absl::Status& status : {
           CheckRange("max_chunk_bytes", max_chunk_bytes, 4096, 64 * kMiB),
           CheckRange("max_unary_bytes", max_unary_bytes, 1, 4 * kMiB - 1),
           CheckRange("max_request_bytes", max_request_bytes, 1, kMost),
           CheckRange("max_key_set_bytes", max_key_set_bytes, 1, kMost),
           CheckCount("max_tree_nodes", max_tree_nodes, 1 << 20),
           CheckCount("max_tree_nesting", max_tree_nesting, 24),
           CheckCount("max_rank", max_rank, 64),
           CheckCount("max_name_bytes", max_name_bytes, 1024),
           CheckCount("max_keys_per_set", max_keys_per_set, 1 << 20),
       }) {
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

void EncodeLimits(const WireLimits& limits, v1::ServerInfo::Limits* out) {
  out->set_max_chunk_bytes(limits.max_chunk_bytes);
  out->set_max_unary_bytes(limits.max_unary_bytes);
  out->set_max_request_bytes(limits.max_request_bytes);
  out->set_max_key_set_bytes(limits.max_key_set_bytes);
}

WireLimits DecodeLimits(const v1::ServerInfo::Limits& stated, const WireLimits& own) {
  WireLimits limits = own;
  limits.max_chunk_bytes = Smaller(stated.max_chunk_bytes(), own.max_chunk_bytes);
  limits.max_unary_bytes = Smaller(stated.max_unary_bytes(), own.max_unary_bytes);
  limits.max_request_bytes = Smaller(stated.max_request_bytes(), own.max_request_bytes);
  limits.max_key_set_bytes = Smaller(stated.max_key_set_bytes(), own.max_key_set_bytes);
  return limits;
}

}  // namespace cipherd::codec
