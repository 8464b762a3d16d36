// Vectors as a NumPy array.
#include "tests/fuzz/vectors_target.h"

namespace cipherd::fuzz {

bool Decode(std::string_view bytes) { return TakeVectors(client::ParseNpy, bytes); }

}  // namespace cipherd::fuzz
