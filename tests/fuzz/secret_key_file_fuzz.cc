// A client's secret key file. The hash at its end is put there, so that all before it is read.
#include <algorithm>

#include "client/files/files.pb.h"
#include "client/files/secret_key_file.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/message_bytes.h"

namespace cipherd::fuzz {

bool Decode(std::string_view bytes) {
  SilenceProtobuf();
  const MemoryFile file(WithHash(bytes));
  const auto key = client::ReadSecretKeyFile(file.path(), ckks::SecurityPolicy::kAllowInsecure);
  if (!key.ok()) return Refused(key.status());
  const auto coefficients = key->coefficients();
  Require(std::all_of(coefficients.begin(), coefficients.end(),
                      [](int8_t c) { return c >= -1 && c <= 1; }),
          "coefficients are ternary");
  return true;
}

}  // namespace cipherd::fuzz
