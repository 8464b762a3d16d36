// Sizes computed from untrusted numbers: every product and sum either fits or is a status.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace cipherd::base {

// Returns a * b, or nothing where it exceeds 64 bits.
constexpr std::optional<uint64_t> CheckedMultiply(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// Returns a + b, or nothing where it exceeds 64 bits.
constexpr std::optional<uint64_t> CheckedAdd(uint64_t a, uint64_t b) {
  uint64_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}

// Returns the product of `dims` (1 for none), or nothing where a dimension is negative or the
// product exceeds 2^63 - 1.
constexpr std::optional<int64_t> CheckedElementCount(std::span<const int64_t> dims) {
  uint64_t count = 1;
  bool has_zero = false;
  for (int64_t dim : dims) {
    if (dim < 0) return std::nullopt;
    if (dim == 0) has_zero = true;
  }
  if (has_zero) return 0;
  for (int64_t dim : dims) {
    std::optional<uint64_t> next = CheckedMultiply(count, static_cast<uint64_t>(dim));
    if (!next.has_value() || *next > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
    count = *next;
  }
  return static_cast<int64_t>(count);
}

}  // namespace cipherd::base
