// A block of constants with addresses into itself, which can be placed at any base address: built
// once on the host, used there as it is, and uploaded to a device by one copy.
//
//   RelocatableImage::Layout layout;
//   const size_t rows = layout.Add<Row>(row_count);
//   const size_t words = layout.Add<uint64_t>(word_count);
//   RelocatableImage image(layout);                        // zeroed
//   image.At<uint64_t>(words)[0] = ...;
//   image.SetPointer(rows + offsetof(Row, words), words);  // holds the host address, and is
//   remembered
//   ...
//   image.WriteAt(device_block, staging);                  // the bytes as they must lie at
//   device_block stream.CopyAsync(device_block, staging, image.bytes());
//
// Sizes are multiples of kImageAlignment, so that several images placed back to back stay aligned.
// Move-only; addresses of its bytes survive a move. Immutable once built, and then thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace cipherd::ring {

inline constexpr size_t kImageAlignment = 256;

class RelocatableImage {
 public:
  // Where the arrays of an image lie, decided before it exists.
  class Layout {
   public:
    // Returns the offset of `count` more objects, 64-byte aligned.
    template <typename T>
    size_t Add(size_t count) {
      const size_t offset = bytes_;
      bytes_ = RoundUp(bytes_ + count * sizeof(T), 64);
      return offset;
    }
    size_t bytes() const { return RoundUp(bytes_, kImageAlignment); }

   private:
    static size_t RoundUp(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }
    size_t bytes_ = 0;
  };

  explicit RelocatableImage(const Layout& layout);
  RelocatableImage(RelocatableImage&&) noexcept = default;
  RelocatableImage& operator=(RelocatableImage&&) noexcept = default;

  size_t bytes() const { return bytes_; }
  // Start of the host's image.
  const void* data() const { return data_.get(); }

  // The object at `offset` of the host's image, or of one that was placed at `base`.
  template <typename T>
  T* At(size_t offset) {
    return reinterpret_cast<T*>(data_.get() + offset);
  }
  template <typename T>
  const T* At(size_t offset) const {
    return reinterpret_cast<const T*>(data_.get() + offset);
  }
  template <typename T>
  static const T* AddressAt(const void* base, size_t offset) {
    return reinterpret_cast<const T*>(static_cast<const std::byte*>(base) + offset);
  }

  // Makes the pointer at `pointer_offset` point to `target_offset`, here and wherever the image is
  // placed.
  void SetPointer(size_t pointer_offset, size_t target_offset);

  // Writes bytes() bytes to `destination` (host memory): the image as it must lie at `base`, which
  // is only an address here and may belong to a device.
  void WriteAt(const void* base, void* destination) const;

 private:
  struct Fixup {
    size_t pointer_offset;
    size_t target_offset;
  };
  struct AlignedDelete {
    void operator()(std::byte* block) const {
      ::operator delete[](block, std::align_val_t{kImageAlignment});
    }
  };

  size_t bytes_;
  std::unique_ptr<std::byte[], AlignedDelete> data_;
  std::vector<Fixup> fixups_;
};

}  // namespace cipherd::ring
