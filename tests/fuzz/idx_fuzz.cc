// An IDX file of the demo, compressed or not.
#include "client/demo/idx_file.h"
#include "tests/fuzz/memory_file.h"

namespace cipherd::fuzz {

bool Decode(std::string_view bytes) {
  const MemoryFile file(bytes);
  const auto array = client::ReadIdxFile(file.path(), /*max_items=*/16);
  if (!array.ok()) return Refused(array.status());
  Require(array->item_count() >= 1 && array->item_count() <= 16, "no more items than asked for");
  return true;
}

}  // namespace cipherd::fuzz
