// What daemon and client must agree on below the messages: sizes and keepalive of a gRPC
// connection, and what a gateway between them routes by.
//
// A daemon that gets pings more often than it allows ends the connection ("too_many_pings"), in the
// middle of long calls; so both sides take their numbers from here.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"

namespace cipherd::transport {

// A client pings while calls are open, so that a dead peer or a proxy's idle limit shows during a
// long upload or evaluation: after this long without a frame, and gives up this long after an
// unanswered ping.
inline constexpr absl::Duration kKeepaliveInterval = absl::Seconds(30);
inline constexpr absl::Duration kKeepaliveTimeout = absl::Seconds(20);
// The daemon's own default for the least time between pings that it allows while it sends nothing
// (cipherd --min-client-ping-interval) must stay below kKeepaliveInterval; it is this.
inline constexpr absl::Duration kMinPingInterval = absl::Seconds(10);
static_assert(kMinPingInterval < kKeepaliveInterval);

// Room in a message for everything but its payload bytes: descriptions, headers.
inline constexpr uint64_t kMessageOverheadBytes = uint64_t{1} << 20;

// The largest message that a side with these limits sends or receives
// (GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH).
constexpr int MaxMessageBytes(uint64_t max_chunk_bytes, uint64_t max_unary_bytes) {
  return static_cast<int>(std::max(max_chunk_bytes, max_unary_bytes) + kMessageOverheadBytes);
}

// HTTP/2 frames of this size instead of 16 KiB: fewer of them for the same chunk.
inline constexpr int kMaxFrameBytes = 1 << 20;

// Metadata of a call by which a gateway finds the replica that has its keys, since it sees no
// message: the id of the key set, 64 hexadecimal digits; of an upload whose client does not know
// that yet, its upload id in hexadecimal digits. The daemon refuses an evaluation whose message
// names another set.
inline constexpr char kKeySetMetadata[] = "cipherd-key-set";

}  // namespace cipherd::transport
