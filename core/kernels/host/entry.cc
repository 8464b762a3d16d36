#include <algorithm>
#include <cstdint>

#include "core/kernels/arithmetic_tables.h"
#include "core/kernels/entry_body.h"
#include "core/kernels/host/launch.h"
#include "core/kernels/host/launchers.h"
#include "core/kernels/poly_access.h"
#include "core/math/fma_arithmetic.h"
#include "core/math/integer_arithmetic.h"

namespace cipherd::kernels::host {
namespace {

using ring::PrimeConstants;

template <class A, BinaryOp kOp>
absl::Status LaunchBinary(const RingTables& ring, const LimbPrimes& limbs, ConstPolyView a,
                          ConstPolyView b, PolyView out, Stream& stream) {
  return Launch("binary", stream, [=] {
    ForEachLimb(ring, limbs, out.outer_count,
                [&](int64_t outer, int limb, const PrimeConstants& prime) {
                  const auto m = ArithmeticTables<A>::Modulus(prime);
                  const uint64_t* x = LimbOf(a, outer, limb, ring.log_n);
                  const uint64_t* y = LimbOf(b, outer, limb, ring.log_n);
                  uint64_t* z = LimbOf(out, outer, limb, ring.log_n);
                  for (int64_t i = 0; i < int64_t{1} << ring.log_n; ++i) {
                    z[i] = BinaryEntry<A, kOp>(x[i], y[i], m);
                  }
                });
  });
}

template <class A>
typename A::Factor ScalarOf(const LimbScalars& scalars, int limb, const typename A::Modulus& m) {
  return A::MakeFactor(scalars.value[limb], scalars.shoup[limb], m);
}

}  // namespace

template <class A>
absl::Status EntryLaunchers<A>::Binary(const RingTables& ring, const LimbPrimes& limbs, BinaryOp op,
                                       ConstPolyView a, ConstPolyView b, PolyView out,
                                       Stream& stream) {
  switch (op) {
    case BinaryOp::kAdd:
      return LaunchBinary<A, BinaryOp::kAdd>(ring, limbs, a, b, out, stream);
    case BinaryOp::kSubtract:
      return LaunchBinary<A, BinaryOp::kSubtract>(ring, limbs, a, b, out, stream);
    case BinaryOp::kMultiply:
      return LaunchBinary<A, BinaryOp::kMultiply>(ring, limbs, a, b, out, stream);
  }
  return absl::InternalError("binary: unchecked operation");
}

template <class A>
absl::Status EntryLaunchers<A>::Negate(const RingTables& ring, const LimbPrimes& limbs,
                                       ConstPolyView a, PolyView out, Stream& stream) {
  return Launch("negate", stream, [=] {
    ForEachLimb(ring, limbs, out.outer_count,
                [&](int64_t outer, int limb, const PrimeConstants& prime) {
                  const auto m = ArithmeticTables<A>::Modulus(prime);
                  const uint64_t* x = LimbOf(a, outer, limb, ring.log_n);
                  uint64_t* z = LimbOf(out, outer, limb, ring.log_n);
                  for (int64_t i = 0; i < int64_t{1} << ring.log_n; ++i) {
                    z[i] = NegateEntry<A>(x[i], m);
                  }
                });
  });
}

template <class A>
absl::Status EntryLaunchers<A>::MultiplyAdd(const RingTables& ring, const LimbPrimes& limbs,
                                            ConstPolyView a, ConstPolyView b, PolyView sum,
                                            Stream& stream) {
  return Launch("multiply_add", stream, [=] {
    ForEachLimb(ring, limbs, sum.outer_count,
                [&](int64_t outer, int limb, const PrimeConstants& prime) {
                  const auto m = ArithmeticTables<A>::Modulus(prime);
                  const uint64_t* x = LimbOf(a, outer, limb, ring.log_n);
                  const uint64_t* y = LimbOf(b, outer, limb, ring.log_n);
                  uint64_t* z = LimbOf(sum, outer, limb, ring.log_n);
                  for (int64_t i = 0; i < int64_t{1} << ring.log_n; ++i) {
                    z[i] = MultiplyAddEntry<A>(x[i], y[i], z[i], m);
                  }
                });
  });
}

template <class A>
absl::Status EntryLaunchers<A>::MultiplyScalars(const RingTables& ring, const LimbPrimes& limbs,
                                                const LimbScalars& scalars, ConstPolyView a,
                                                PolyView out, Stream& stream) {
  return Launch("multiply_scalars", stream, [=] {
    ForEachLimb(ring, limbs, out.outer_count,
                [&](int64_t outer, int limb, const PrimeConstants& prime) {
                  const auto m = ArithmeticTables<A>::Modulus(prime);
                  const auto scalar = ScalarOf<A>(scalars, limb, m);
                  const uint64_t* x = LimbOf(a, outer, limb, ring.log_n);
                  uint64_t* z = LimbOf(out, outer, limb, ring.log_n);
                  for (int64_t i = 0; i < int64_t{1} << ring.log_n; ++i) {
                    z[i] = MultiplyScalarEntry<A>(x[i], scalar, m);
                  }
                });
  });
}

template <class A>
absl::Status EntryLaunchers<A>::SubtractScale(const RingTables& ring, const LimbPrimes& limbs,
                                              const LimbScalars& scalars, ConstPolyView a,
                                              ConstPolyView b, PolyView out, Stream& stream) {
  return Launch("subtract_scale", stream, [=] {
    ForEachLimb(ring, limbs, out.outer_count,
                [&](int64_t outer, int limb, const PrimeConstants& prime) {
                  const auto m = ArithmeticTables<A>::Modulus(prime);
                  const auto scalar = ScalarOf<A>(scalars, limb, m);
                  const uint64_t* x = LimbOf(a, outer, limb, ring.log_n);
                  const uint64_t* y = LimbOf(b, outer, limb, ring.log_n);
                  uint64_t* z = LimbOf(out, outer, limb, ring.log_n);
                  for (int64_t i = 0; i < int64_t{1} << ring.log_n; ++i) {
                    z[i] = SubtractScaleEntry<A>(x[i], y[i], scalar, m);
                  }
                });
  });
}

template <class A>
absl::Status EntryLaunchers<A>::TensorProduct(const RingTables& ring, const LimbPrimes& limbs,
                                              ConstPolyView a, ConstPolyView b, PolyView out,
                                              Stream& stream) {
  return Launch("tensor_product", stream, [=] {
    const int64_t batch = out.outer_count / 3;
    ForEachLimb(ring, limbs, batch, [&](int64_t item, int limb, const PrimeConstants& prime) {
      const auto m = ArithmeticTables<A>::Modulus(prime);
      const uint64_t* a0 = LimbOf(a, item, limb, ring.log_n);
      const uint64_t* a1 = LimbOf(a, batch + item, limb, ring.log_n);
      const uint64_t* b0 = LimbOf(b, item, limb, ring.log_n);
      const uint64_t* b1 = LimbOf(b, batch + item, limb, ring.log_n);
      uint64_t* out0 = LimbOf(out, item, limb, ring.log_n);
      uint64_t* out1 = LimbOf(out, batch + item, limb, ring.log_n);
      uint64_t* out2 = LimbOf(out, 2 * batch + item, limb, ring.log_n);
      for (int64_t i = 0; i < int64_t{1} << ring.log_n; ++i) {
        const TensorProductWords words = TensorProductEntry<A>(a0[i], a1[i], b0[i], b1[i], m);
        out0[i] = words.out0;
        out1[i] = words.out1;
        out2[i] = words.out2;
      }
    });
  });
}

template <class A>
absl::Status EntryLaunchers<A>::Copy(const RingTables& ring, int limb_count, ConstPolyView a,
                                     PolyView out, Stream& stream) {
  return Launch("copy", stream, [=] {
    for (int64_t outer = 0; outer < out.outer_count; ++outer) {
      std::copy_n(LimbOf(a, outer, 0, ring.log_n), int64_t{limb_count} << ring.log_n,
                  LimbOf(out, outer, 0, ring.log_n));
    }
  });
}

template <class A>
absl::Status EntryLaunchers<A>::LiftSigned(const RingTables& ring, const LimbPrimes& limbs,
                                           const int64_t* in, int64_t in_outer_stride, PolyView out,
                                           Stream& stream) {
  return Launch("lift_signed", stream, [=] {
    ForEachLimb(ring, limbs, out.outer_count,
                [&](int64_t outer, int limb, const PrimeConstants& prime) {
                  const auto m = ArithmeticTables<A>::Modulus(prime);
                  const int64_t* coefficients = in + outer * in_outer_stride;
                  uint64_t* z = LimbOf(out, outer, limb, ring.log_n);
                  for (int64_t i = 0; i < int64_t{1} << ring.log_n; ++i) {
                    z[i] = LiftSignedEntry<A>(coefficients[i], m);
                  }
                });
  });
}

template struct EntryLaunchers<math::IntegerArithmetic>;
template struct EntryLaunchers<math::FmaArithmetic>;

}  // namespace cipherd::kernels::host
