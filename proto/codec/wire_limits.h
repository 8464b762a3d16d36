// Upper bounds on what a peer may send, checked before anything is allocated for it.
//
//   WireLimits limits;
//   limits.max_key_set_bytes = uint64_t{4} << 30;
//   CIPHERD_RETURN_IF_ERROR(limits.Validate());
//
// The daemon states the byte limits in ServerInfo; the counts are part of the wire format
// (proto/WIRE_FORMAT.md). A plain value.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "cipherd/v1/evaluation.pb.h"

namespace cipherd::codec {

struct WireLimits {
  // Payload bytes of one message of a stream. Above 4 MiB throughput falls.
  uint64_t max_chunk_bytes = uint64_t{4} << 20;
  // Payload bytes of one unary message: with its description it stays below the 4 MiB that every
  // gRPC library receives by default.
  uint64_t max_unary_bytes = uint64_t{15} << 18;
  // Payload bytes of the inputs, and of the outputs, of one evaluation.
  uint64_t max_request_bytes = uint64_t{1} << 30;
  // Payload bytes of one key set.
  uint64_t max_key_set_bytes = uint64_t{16} << 30;

  // Of one tree: nodes in all, and containers around a leaf. Protobuf itself stops at a hundred
  // nested messages, of which each level takes up to three.
  int max_tree_nodes = 4096;
  int max_tree_nesting = 16;
  // Dimensions of one tensor.
  int max_rank = 8;
  // Bytes of a tensor's name or a dict's key.
  int max_name_bytes = 64;
  int max_keys_per_set = 4096;

  // InvalidArgument naming the field: all at least 1; chunks from 4 KiB to 64 MiB; unary messages
  // below 4 MiB; max_tree_nesting at most 24.
  absl::Status Validate() const;
};

// The byte limits as the daemon states them, and as a client reads them. DecodeLimits takes the
// smaller of what the daemon states and `own`; a limit that is 0 is not stated.
void EncodeLimits(const WireLimits& limits, v1::ServerInfo::Limits* out);
WireLimits DecodeLimits(const v1::ServerInfo::Limits& stated, const WireLimits& own);

}  // namespace cipherd::codec
