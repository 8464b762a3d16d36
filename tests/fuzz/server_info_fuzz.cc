// What a daemon says of its limits.
#include "proto/codec/wire_limits.h"
#include "tests/fuzz/message_bytes.h"

namespace cipherd::fuzz {

bool Decode(std::string_view bytes) {
  const auto message = ParseMessage<v1::ServerInfo>(bytes);
  if (!message.has_value()) return false;
  const codec::WireLimits own;
  const codec::WireLimits limits = codec::DecodeLimits(message->limits(), own);
  Require(limits.max_chunk_bytes <= own.max_chunk_bytes &&
              limits.max_unary_bytes <= own.max_unary_bytes &&
              limits.max_request_bytes <= own.max_request_bytes &&
              limits.max_key_set_bytes <= own.max_key_set_bytes,
          "a daemon raises no limit of its client");
  Require(limits.max_chunk_bytes > 0, "a stream of no bytes a chunk would not end");
  return message->has_limits();
}

}  // namespace cipherd::fuzz
