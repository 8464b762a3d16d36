#include "core/ring/relocatable_image.h"

#include <cstring>

namespace cipherd::ring {
namespace {

void WritePointer(void* at, const void* base, size_t offset) {
  const std::byte* address = static_cast<const std::byte*>(base) + offset;
  std::memcpy(at, &address, sizeof(address));
}

}  // namespace

RelocatableImage::RelocatableImage(const Layout& layout)
    : bytes_(layout.bytes()),
      data_(static_cast<std::byte*>(
          ::operator new[](layout.bytes(), std::align_val_t{kImageAlignment}))) {
  std::memset(data_.get(), 0, bytes_);
}

void RelocatableImage::SetPointer(size_t pointer_offset, size_t target_offset) {
  fixups_.push_back({pointer_offset, target_offset});
  WritePointer(data_.get() + pointer_offset, data_.get(), target_offset);
}

void RelocatableImage::WriteAt(const void* base, void* destination) const {
  std::memcpy(destination, data_.get(), bytes_);
  for (const Fixup& fixup : fixups_) {
    WritePointer(static_cast<std::byte*>(destination) + fixup.pointer_offset, base,
                 fixup.target_offset);
  }
}

}  // namespace cipherd::ring
