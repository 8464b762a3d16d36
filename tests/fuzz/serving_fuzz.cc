// A serving.textproto.
#include "proto/codec/serving_codec.h"
#include "tests/fuzz/codec_refusal.h"
#include "tests/fuzz/message_bytes.h"

namespace cipherd::fuzz {

bool Decode(std::string_view bytes) {
  SilenceProtobuf();
  const auto serving = codec::ParseServingText(bytes, "serving.textproto");
  return serving.ok() || RefusedByCodec(serving.status());
}

}  // namespace cipherd::fuzz
