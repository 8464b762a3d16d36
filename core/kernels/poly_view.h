// What operands of kernels look like: limbs, polynomials, keys.
#pragma once

#include <array>
#include <cstdint>

namespace cipherd::kernels {

// Limbs of one polynomial; log QP of a 128-bit secure context at N = 2^17 fits.
inline constexpr int kMaxLimbs = 64;
// Digits of a key switch.
inline constexpr int kMaxDigits = 64;

// Which prime each limb of an operand is taken modulo: row of RingTables::primes by limb.
struct LimbPrimes {
  int count = 0;
  std::array<uint16_t, kMaxLimbs> prime = {};
};

// One multiplicative constant per limb, canonical, with its Shoup quotient.
struct LimbScalars {
  std::array<uint64_t, kMaxLimbs> value = {};
  std::array<uint64_t, kMaxLimbs> shoup = {};
};

// Polynomials in memory: `outer_count` of them (components times batch), limb l of polynomial o
// begins at data + o · outer_stride + l · N. Strides count words. An input with outer_count 1 is
// broadcast over the polynomials of the other operand.
struct PolyView {
  uint64_t* data = nullptr;
  int64_t outer_count = 1;
  int64_t outer_stride = 0;
};
struct ConstPolyView {
  const uint64_t* data = nullptr;
  int64_t outer_count = 1;
  int64_t outer_stride = 0;

  ConstPolyView() = default;
  ConstPolyView(const uint64_t* d, int64_t count, int64_t stride)
      : data(d), outer_count(count), outer_stride(stride) {}
  ConstPolyView(const PolyView& v)  // NOLINT: a view of mutable words is one of const words
      : data(v.data), outer_count(v.outer_count), outer_stride(v.outer_stride) {}
};

// The key-switching key of one launch, read through a slot that holds its address, so that a
// captured launch can be pointed at another tenant's key by overwriting the slot. Key layout:
// [digit, 2, key_limb_count, N] words.
struct KeySlot {
  const uint64_t* const* slot = nullptr;  // device address of the address
  int key_limb_count = 0;                 // limbs that the key was made with
  int first_limb = 0;                     // key limb that belongs to limb 0 of the operand
  // Key digit that belongs to each digit of the operand. A digit without active primes is skipped,
  // and with an arbitrary partition the remaining ones need not be neighbours.
  std::array<uint16_t, kMaxDigits> key_digits = {};
};

}  // namespace cipherd::kernels
