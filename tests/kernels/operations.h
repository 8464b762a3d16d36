// Every operation of a kernel table on small operands, for tests of what all launches have in
// common.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/kernels/kernel_table.h"
#include "core/runtime/stream.h"

namespace cipherd::testing {

// Operands that suit every operation: two limbs, one batch item.
struct Operands {
  ring::RingTables ring;
  kernels::LimbPrimes limbs;
  ring::BasisConversionTables conversion;  // of the two primes to one
  // Addresses that tests replace. `a` and `b` hold two polynomials, `out` three; the slot points to
  // a key of one digit.
  const uint64_t* a = nullptr;
  const uint64_t* b = nullptr;
  uint64_t* out = nullptr;
  const uint64_t* const* slot = nullptr;

  int64_t stride() const { return int64_t{limbs.count} << ring.log_n; }
  kernels::ConstPolyView ViewOf(const uint64_t* data, int64_t count) const {
    return {data, count, stride()};
  }
};

struct Operation {
  std::string name;
  bool reads_b = false;
  bool may_be_in_place = false;
  std::function<absl::Status(const kernels::KernelTable&, const Operands&, runtime::Stream&)> run;
  bool reads_slot = false;
};

inline std::vector<Operation> AllOperations() {
  using kernels::KernelTable;
  using runtime::Stream;
  const auto one = [](const Operands& x, const uint64_t* data) { return x.ViewOf(data, 1); };
  const auto out = [](const Operands& x, int64_t count) {
    return kernels::PolyView{x.out, count, x.stride()};
  };
  return {
      {"forward_ntt", false, true,
       [=](const KernelTable& k, const Operands& x, Stream& s) {
         return k.forward_ntt(x.ring, x.limbs, one(x, x.a), out(x, 1), s);
       }},
      {"inverse_ntt", false, true,
       [=](const KernelTable& k, const Operands& x, Stream& s) {
         return k.inverse_ntt(x.ring, x.limbs, one(x, x.a), out(x, 1), s);
       }},
      {"binary", true, true,
       [=](const KernelTable& k, const Operands& x, Stream& s) {
         return k.binary(x.ring, x.limbs, kernels::BinaryOp::kAdd, one(x, x.a), one(x, x.b),
                         out(x, 1), s);
       }},
      {"negate", false, true,
       [=](const KernelTable& k, const Operands& x, Stream& s) {
         return k.negate(x.ring, x.limbs, one(x, x.a), out(x, 1), s);
       }},
      {"multiply_add", true, false,
       [=](const KernelTable& k, const Operands& x, Stream& s) {
         return k.multiply_add(x.ring, x.limbs, one(x, x.a), one(x, x.b), out(x, 1), s);
       }},
      {"multiply_scalars", false, true,
       [=](const KernelTable& k, const Operands& x, Stream& s) {
         return k.multiply_scalars(x.ring, x.limbs, kernels::LimbScalars{}, one(x, x.a), out(x, 1),
                                   s);
       }},
      {"tensor_product", true, false,
       [=](const KernelTable& k, const Operands& x, Stream& s) {
         return k.tensor_product(x.ring, x.limbs, x.ViewOf(x.a, 2), x.ViewOf(x.b, 2), out(x, 3), s);
       }},
      {"automorphism_ntt", false, false,
       [=](const KernelTable& k, const Operands& x, Stream& s) {
         return k.automorphism_ntt(x.ring, x.limbs, 5, one(x, x.a), out(x, 1), s);
       }},
      {"automorphism_coefficient", false, false,
       [=](const KernelTable& k, const Operands& x, Stream& s) {
         return k.automorphism_coefficient(x.ring, x.limbs, 5, one(x, x.a), out(x, 1), s);
       }},
      {"convert_basis", false, false,
       [=](const KernelTable& k, const Operands& x, Stream& s) {
         return k.convert_basis(x.ring, x.conversion, one(x, x.a), out(x, 1), s);
       }},
      {"subtract_scale", true, true,
       [=](const KernelTable& k, const Operands& x, Stream& s) {
         return k.subtract_scale(x.ring, x.limbs, kernels::LimbScalars{}, one(x, x.a), one(x, x.b),
                                 out(x, 1), s);
       }},
      {"key_inner_product", false, false,
       [=](const KernelTable& k, const Operands& x, Stream& s) {
         kernels::KeySlot key;
         key.slot = x.slot;
         key.key_limb_count = x.limbs.count;
         return k.key_inner_product(x.ring, x.limbs, 1, 5, one(x, x.a), key, out(x, 2), s);
       },
       true},
      {"rotation_sums", true, false,
       [=](const KernelTable& k, const Operands& x, Stream& s) {
         kernels::RotationSums sums;
         sums.rotation_count = 1;
         sums.rotations[0] = {.key_slot = x.slot, .galois_element = 5};
         sums.digit_count = 1;
         sums.key.key_limb_count = x.limbs.count;
         sums.addend_scalars = {1, 1};
         return k.rotation_sums(x.ring, x.limbs, sums, one(x, x.a), x.ViewOf(x.b, 2), out(x, 2), s);
       },
       true},
      {"copy", false, false,
       [=](const KernelTable& k, const Operands& x, Stream& s) {
         return k.copy(x.ring, x.limbs.count, one(x, x.a), out(x, 1), s);
       }},
      {"lift_signed", false, false,
       [=](const KernelTable& k, const Operands& x, Stream& s) {
         return k.lift_signed(x.ring, x.limbs, reinterpret_cast<const int64_t*>(x.a), 0, out(x, 1),
                              s);
       }},
  };
}

}  // namespace cipherd::testing
