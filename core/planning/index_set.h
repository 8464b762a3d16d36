// A small set of indices below 128, as bits: which coefficients of a polynomial there are.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace cipherd::planning {

class IndexSet {
 public:
  static constexpr int kCapacity = 128;

  // Everywhere, 0 <= index < kCapacity.
  void Insert(int index) { bits_ |= Bits{1} << index; }
  void Erase(int index) { bits_ &= ~(Bits{1} << index); }
  bool Contains(int index) const { return (bits_ >> index & 1) != 0; }
  bool IsEmpty() const { return bits_ == 0; }
  int Count() const { return std::popcount(High()) + std::popcount(Low()); }
  // The largest index; -1 of none.
  int Highest() const {
    return High() != 0 ? 64 + std::bit_width(High()) - 1 : std::bit_width(Low()) - 1;
  }

  // What is in this set and not in `other`.
  IndexSet Without(const IndexSet& other) const { return IndexSet(bits_ & ~other.bits_); }
  // Indices from `index` on, less `index`.
  IndexSet From(int index) const { return IndexSet(bits_ >> index); }
  // Indices below `index`.
  IndexSet Below(int index) const { return IndexSet(bits_ & ((Bits{1} << index) - 1)); }

  bool operator==(const IndexSet&) const = default;
  size_t Hash() const { return Low() * 0x9E3779B97F4A7C15 ^ High() * 0xC2B2AE3D27D4EB4F; }

  IndexSet() = default;

 private:
  using Bits = unsigned __int128;

  explicit IndexSet(Bits bits) : bits_(bits) {}
  uint64_t High() const { return static_cast<uint64_t>(bits_ >> 64); }
  uint64_t Low() const { return static_cast<uint64_t>(bits_); }

  Bits bits_ = 0;
};

}  // namespace cipherd::planning
