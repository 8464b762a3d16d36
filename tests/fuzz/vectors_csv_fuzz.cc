// Vectors as comma-separated text.
#include "tests/fuzz/vectors_target.h"

namespace cipherd::fuzz {

bool Decode(std::string_view bytes) { return TakeVectors(client::ParseCsv, bytes); }

}  // namespace cipherd::fuzz
