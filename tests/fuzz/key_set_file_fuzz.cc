// A client's file of evaluation keys. The hash at its end is put there, so that all before it is
// read.
#include "client/files/key_set_file.h"
#include "tests/codec/wire_values.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/message_bytes.h"

namespace cipherd::fuzz {

bool Decode(std::string_view bytes) {
  SilenceProtobuf();
  const MemoryFile file(WithHash(bytes));
  auto keys =
      client::KeySetFileReader::Open(file.path(), testing::SmallContext(), codec::WireLimits());
  if (!keys.ok()) return Refused(keys.status());
  for (int i = 0; i < keys->key_count(); ++i) {
    const auto key = keys->ReadKey();
    if (!key.ok()) return Refused(key.status());
  }
  const absl::Status status = keys->Finish();
  return status.ok() || Refused(status);
}

}  // namespace cipherd::fuzz
