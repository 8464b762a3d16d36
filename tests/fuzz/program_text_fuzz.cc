// A program.textproto.
#include "proto/codec/program_codec.h"
#include "tests/fuzz/codec_refusal.h"
#include "tests/fuzz/message_bytes.h"

namespace cipherd::fuzz {

bool Decode(std::string_view bytes) {
  SilenceProtobuf();
  const auto program = codec::ParseProgramText(bytes, "program.textproto");
  if (!program.ok()) return RefusedByCodec(program.status());
  const auto text = codec::PrintProgramText(*program);
  Require(text.ok(), "what was read is printed");
  const auto again = codec::ParseProgramText(*text, "again");
  Require(again.ok() && codec::PrintProgramText(*again) == text, "and read again");
  return true;
}

}  // namespace cipherd::fuzz
