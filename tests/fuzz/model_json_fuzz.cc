// A model as JSON, and what checks its meaning.
#include "tests/fuzz/model_target.h"

namespace cipherd::fuzz {

bool Decode(std::string_view bytes) { return TakeModel(codec::ModelFromJson, bytes); }

}  // namespace cipherd::fuzz
