// Sums of rotated ciphertexts over QP, each times a plaintext: what the two halves of a linear
// transform have in common (core/ckks/double_hoisting.h).
//
// A rotation r of an item is, modulo every limb of QP,
//   R_r = (sum_d digit_d(X^g) · key[d, 0] + c · addend(X^g), sum_d digit_d(X^g) · key[d, 1]),
// the key switch of what the digits stand for, not divided by P, and beside it component 0 of the
// ciphertext, which no key touches, times a constant c (P where the addend is over Q). A launch
// gives
//   out[s] = sum_r factor[s][r] · R_r
// for several sums, so that rotations are not written to memory and read again.
#pragma once

#include <array>
#include <cstdint>

#include "core/kernels/poly_view.h"

namespace cipherd::kernels {

// Rotations and sums of one launch: its arguments fit the 4 KiB that every GPU takes.
inline constexpr int kMaxSumRotations = 16;
inline constexpr int kMaxRotationSums = 8;

struct RotationSums {
  struct Rotation {
    // Address of the key's address (KeySlot::slot). Null: no rotation, galois_element 1; R_r is
    // c · (component 0, component 1) of the addend.
    const uint64_t* const* key_slot = nullptr;
    uint32_t galois_element = 1;
    // The polynomials of item o are digit_item + o of each digit, addend_item + o of the addend.
    int32_t digit_item = 0;
    int32_t addend_item = 0;
  };
  // A polynomial of all limbs for each item, item_stride words apart; one for all where that is 0;
  // 0 itself where data is null.
  struct Factor {
    const uint64_t* data = nullptr;
    int64_t item_stride = 0;
  };

  int rotation_count = 0;
  std::array<Rotation, kMaxSumRotations> rotations;
  int sum_count = 1;
  // Without factors, all are 1, and there is one sum.
  bool has_factors = false;
  std::array<std::array<Factor, kMaxSumRotations>, kMaxRotationSums> factors;  // [sum][rotation]
  // Adds to what `out` holds.
  bool accumulates = false;

  int digit_count = 0;
  KeySlot key;  // the form of all keys; its slot is not used
  // c by limb, canonical; the addend has limbs up to the last one where it is not 0.
  std::array<uint64_t, kMaxLimbs> addend_scalars = {};
};

}  // namespace cipherd::kernels
