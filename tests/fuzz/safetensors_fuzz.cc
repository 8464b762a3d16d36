// A safetensors file: constants of a program or a model.
#include "core/programs/safetensors.h"
#include "tests/fuzz/memory_file.h"

namespace cipherd::fuzz {

bool Decode(std::string_view bytes) {
  const MemoryFile file(bytes);
  const auto constants = programs::ReadSafetensors(file.path(), int64_t{1} << 20);
  if (!constants.ok()) return Refused(constants.status());
  int64_t tensor_bytes = 0;
  for (const auto& [name, tensor] : *constants) tensor_bytes += tensor.bytes();
  Require(tensor_bytes <= static_cast<int64_t>(bytes.size()),
          "tensors are no larger than the file");
  return !constants->empty();
}

}  // namespace cipherd::fuzz
