// A client's file of a program. The hash at its end is put there, so that all before it is read.
#include "client/files/program_file.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/message_bytes.h"

namespace cipherd::fuzz {

bool Decode(std::string_view bytes) {
  SilenceProtobuf();
  const MemoryFile file(WithHash(bytes));
  const auto program = client::ReadStoredProgram(file.path(), ckks::SecurityPolicy::kAllowInsecure);
  return program.ok() || Refused(program.status());
}

}  // namespace cipherd::fuzz
