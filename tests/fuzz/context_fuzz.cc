// A context, as a program's file, a daemon or a key file states it.
#include "proto/codec/context_codec.h"
#include "proto/codec/known_context.h"
#include "tests/fuzz/codec_refusal.h"
#include "tests/fuzz/message_bytes.h"

namespace cipherd::fuzz {

bool Decode(std::string_view bytes) {
  constexpr auto kPolicy = ckks::SecurityPolicy::kAllowInsecure;
  const auto message = ParseMessage<v1::ContextParameters>(bytes);
  if (!message.has_value()) return false;
  const auto context = codec::DecodeContext(*message, kPolicy, "context");
  if (!context.ok()) return RefusedByCodec(context.status());
  v1::ContextParameters again;
  codec::EncodeContext(*context, &again);
  const auto second = codec::DecodeContext(again, kPolicy, "again");
  Require(second.ok() && *second == *context, "a context says the same again");
  Require(codec::KnownContext::Create(*context, kPolicy).ok(), "a context that is taken is valid");
  return true;
}

}  // namespace cipherd::fuzz
