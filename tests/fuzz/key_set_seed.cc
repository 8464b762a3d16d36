#include "tests/fuzz/key_set_seed.h"

#include "proto/codec/tree_encoder.h"
#include "tests/codec/wire_values.h"

namespace cipherd::fuzz {

std::vector<value::ExactValue> SeedKeys() {
  const codec::KnownContext& context = *testing::SmallContext();
  return {testing::MakeKey(context, ckks::KeyId::Relinearization()),
          testing::MakeKey(context, ckks::KeyId::Rotation(1, context.parameters().slot_count()))};
}

std::vector<v1::PutKeysRequest> KeySetMessages() {
  std::vector<v1::PutKeysRequest> messages(1);
  uint64_t total_bytes = 0;
  for (const value::ExactValue& key : SeedKeys()) {
    v1::PutKeysRequest& description = messages.emplace_back();
    codec::PayloadSource payload =
        codec::EncodeValue(key, "key", description.mutable_key()).value();
    total_bytes += payload.total_bytes();
    payload.TakeInto(payload.total_bytes(), messages.emplace_back().mutable_chunk());
  }
  v1::KeySetHeader& header = *messages.front().mutable_header();
  header.set_context_id(testing::SmallContext()->id_bytes());
  header.set_key_count(2);
  header.set_total_bytes(total_bytes);
  return messages;
}

}  // namespace cipherd::fuzz
