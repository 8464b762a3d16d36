#include "core/runtime/memory.h"

#include <new>

#include "absl/strings/str_cat.h"

namespace cipherd::runtime {
namespace {

constexpr std::align_val_t kPageableAlignment{64};

class PageableStorage final : public Storage {
 public:
  PageableStorage(void* data, size_t bytes)
      : Storage(data, bytes, MemorySpace::kPageable, /*device=*/nullptr) {}
  ~PageableStorage() override { ::operator delete(data(), kPageableAlignment); }

  void RecordUse(Stream& stream) override {}
};

}  // namespace

std::string ToString(MemorySpace space) {
  switch (space) {
    case MemorySpace::kPageable:
      return "host";
    case MemorySpace::kPinned:
      return "pinned host";
    case MemorySpace::kDevice:
      return "device";
  }
  return "unknown";
}

absl::StatusOr<StoragePtr> AllocatePageable(size_t bytes) {
  void* data = nullptr;
  if (bytes > 0) {
    data = ::operator new(bytes, kPageableAlignment, std::nothrow);
    if (data == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat("host memory: asked for ", bytes, " bytes, the heap has none"));
    }
  }
  return std::make_shared<PageableStorage>(data, bytes);
}

}  // namespace cipherd::runtime
