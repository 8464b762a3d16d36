// A key set, as PutKeys receives it: the header and all that follows, message by message.
#include <optional>
#include <utility>
#include <vector>

#include "proto/codec/key_set_reader.h"
#include "tests/codec/wire_values.h"
#include "tests/fuzz/codec_refusal.h"
#include "tests/fuzz/message_bytes.h"

namespace cipherd::fuzz {

bool Decode(std::string_view bytes) {
  const std::vector<codec::KnownContextPtr> contexts = {testing::SmallContext()};
  Pieces pieces(bytes);
  if (pieces.is_empty()) return false;
  const auto header = ParseMessage<v1::PutKeysRequest>(pieces.Next());
  if (!header.has_value()) return false;
  auto reader = codec::KeySetReader::Create(header->header(), contexts, codec::WireLimits());
  if (!reader.ok()) return RefusedByCodec(reader.status());
  while (!pieces.is_empty()) {
    const auto message = ParseMessage<v1::PutKeysRequest>(pieces.Next());
    if (!message.has_value()) return false;
    const absl::Status status = reader->Read(*message, codec::PageableTensors());
    if (!status.ok()) return RefusedByCodec(status);
  }
  const uint64_t total_bytes = reader->total_bytes();
  const uint32_t key_count = reader->key_count();
  const auto keys = std::move(*reader).Finish();
  if (!keys.ok()) return RefusedByCodec(keys.status());
  Require(keys->payload_bytes == total_bytes && keys->keys.size() == key_count,
          "a set is what its header says");
  return true;
}

}  // namespace cipherd::fuzz
