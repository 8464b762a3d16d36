// A model in text form, and what checks its meaning.
#include "tests/fuzz/model_target.h"

namespace cipherd::fuzz {

bool Decode(std::string_view bytes) { return TakeModel(codec::ParseModelText, bytes); }

}  // namespace cipherd::fuzz
