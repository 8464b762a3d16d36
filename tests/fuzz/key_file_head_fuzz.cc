// The head of a key set's file in the daemon's directory. The hash at its end is put there, so that
// all before it is read.
#include "server/engine/key_file_head.h"
#include "tests/fuzz/memory_file.h"

namespace cipherd::fuzz {

bool Decode(std::string_view bytes) {
  using engine::kKeyFilePrefixBytes;
  if (bytes.size() < kKeyFilePrefixBytes) return false;
  const auto rest_bytes =
      engine::KeyFileHeadBytes(std::string(bytes.substr(0, kKeyFilePrefixBytes)));
  if (!rest_bytes.ok()) return Refused(rest_bytes.status());
  const std::string_view head = bytes.substr(kKeyFilePrefixBytes);
  const auto info = engine::DecodeKeyFileHead(WithHash(head));
  if (!info.ok()) return Refused(info.status());
  Require(engine::EncodeKeyFileHead(**info).substr(kKeyFilePrefixBytes) == WithHash(head),
          "a head says the same again");
  return true;
}

}  // namespace cipherd::fuzz
