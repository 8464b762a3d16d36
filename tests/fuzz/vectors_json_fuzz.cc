// Vectors as JSON.
#include "tests/fuzz/vectors_target.h"

namespace cipherd::fuzz {

bool Decode(std::string_view bytes) { return TakeVectors(client::ParseJson, bytes); }

}  // namespace cipherd::fuzz
