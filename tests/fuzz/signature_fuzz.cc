// What a program takes and gives, as a daemon describes it.
#include "proto/codec/signature_codec.h"
#include "tests/fuzz/codec_refusal.h"
#include "tests/fuzz/message_bytes.h"

namespace cipherd::fuzz {

bool Decode(std::string_view bytes) {
  const codec::WireLimits limits;
  const auto message = ParseMessage<v1::ValueTreeSignature>(bytes);
  if (!message.has_value()) return false;
  const auto signature = codec::DecodeSignature(*message, limits, "signature");
  if (!signature.ok()) return RefusedByCodec(signature.status());
  v1::ValueTreeSignature again;
  Require(codec::EncodeSignature(*signature, "again", &again).ok(), "what was read is written");
  const auto second = codec::DecodeSignature(again, limits, "again");
  Require(second.ok(), "and read again");
  // A scale that is no number is not equal to itself.
  Require(second->ToString() == signature->ToString(), "a signature says the same again");
  return true;
}

}  // namespace cipherd::fuzz
