#include <cstdint>

#include "core/kernels/arithmetic_tables.h"
#include "core/kernels/cuda/launch.cuh"
#include "core/kernels/cuda/launchers.h"
#include "core/kernels/entry_body.h"
#include "core/kernels/poly_access.h"
#include "core/math/fma_arithmetic.h"
#include "core/math/integer_arithmetic.h"

namespace cipherd::kernels::cuda {
namespace {

using ring::PrimeConstants;

template <class View>
__device__ auto& At(const View& view, const RingTables& ring, const EntryPlace& place) {
  return LimbOf(view, place.outer, place.limb, ring.log_n)[place.i];
}

template <class A, BinaryOp kOp>
struct BinaryOperation {
  ConstPolyView a;
  ConstPolyView b;
  PolyView out;

  __device__ void operator()(const RingTables& ring, const PrimeConstants& prime,
                             const EntryPlace& place) const {
    At(out, ring, place) = BinaryEntry<A, kOp>(At(a, ring, place), At(b, ring, place),
                                               ArithmeticTables<A>::Modulus(prime));
  }
};

template <class A>
struct NegateOperation {
  ConstPolyView a;
  PolyView out;

  __device__ void operator()(const RingTables& ring, const PrimeConstants& prime,
                             const EntryPlace& place) const {
    At(out, ring, place) = NegateEntry<A>(At(a, ring, place), ArithmeticTables<A>::Modulus(prime));
  }
};

template <class A>
struct MultiplyAddOperation {
  ConstPolyView a;
  ConstPolyView b;
  PolyView sum;

  __device__ void operator()(const RingTables& ring, const PrimeConstants& prime,
                             const EntryPlace& place) const {
    uint64_t& word = At(sum, ring, place);
    word = MultiplyAddEntry<A>(At(a, ring, place), At(b, ring, place), word,
                               ArithmeticTables<A>::Modulus(prime));
  }
};

template <class A>
struct MultiplyScalarsOperation {
  LimbScalars scalars;
  ConstPolyView a;
  PolyView out;

  __device__ void operator()(const RingTables& ring, const PrimeConstants& prime,
                             const EntryPlace& place) const {
    const auto m = ArithmeticTables<A>::Modulus(prime);
    const auto scalar = A::MakeFactor(scalars.value[place.limb], scalars.shoup[place.limb], m);
    At(out, ring, place) = MultiplyScalarEntry<A>(At(a, ring, place), scalar, m);
  }
};

template <class A>
struct SubtractScaleOperation {
  LimbScalars scalars;
  ConstPolyView a;
  ConstPolyView b;
  PolyView out;

  __device__ void operator()(const RingTables& ring, const PrimeConstants& prime,
                             const EntryPlace& place) const {
    const auto m = ArithmeticTables<A>::Modulus(prime);
    const auto scalar = A::MakeFactor(scalars.value[place.limb], scalars.shoup[place.limb], m);
    At(out, ring, place) = SubtractScaleEntry<A>(At(a, ring, place), At(b, ring, place), scalar, m);
  }
};

template <class A>
struct TensorProductOperation {
  int64_t batch;
  ConstPolyView a;
  ConstPolyView b;
  PolyView out;

  __device__ void operator()(const RingTables& ring, const PrimeConstants& prime,
                             const EntryPlace& item) const {
    const EntryPlace second = {item.outer + batch, item.limb, item.i};
    const EntryPlace third = {item.outer + 2 * batch, item.limb, item.i};
    const TensorProductWords words =
        TensorProductEntry<A>(At(a, ring, item), At(a, ring, second), At(b, ring, item),
                              At(b, ring, second), ArithmeticTables<A>::Modulus(prime));
    At(out, ring, item) = words.out0;
    At(out, ring, second) = words.out1;
    At(out, ring, third) = words.out2;
  }
};

struct CopyOperation {
  ConstPolyView a;
  PolyView out;

  __device__ void operator()(const RingTables& ring, const PrimeConstants&,
                             const EntryPlace& place) const {
    At(out, ring, place) = At(a, ring, place);
  }
};

template <class A>
struct LiftSignedOperation {
  const int64_t* in;
  int64_t in_outer_stride;
  PolyView out;

  __device__ void operator()(const RingTables& ring, const PrimeConstants& prime,
                             const EntryPlace& place) const {
    At(out, ring, place) = LiftSignedEntry<A>(in[place.outer * in_outer_stride + place.i],
                                              ArithmeticTables<A>::Modulus(prime));
  }
};

}  // namespace

template <class A>
absl::Status EntryLaunchers<A>::Binary(const RingTables& ring, const LimbPrimes& limbs, BinaryOp op,
                                       ConstPolyView a, ConstPolyView b, PolyView out,
                                       Stream& stream) {
  switch (op) {
    case BinaryOp::kAdd:
      return LaunchEntries("add", ring, limbs, out.outer_count,
                           BinaryOperation<A, BinaryOp::kAdd>{a, b, out}, stream);
    case BinaryOp::kSubtract:
      return LaunchEntries("subtract", ring, limbs, out.outer_count,
                           BinaryOperation<A, BinaryOp::kSubtract>{a, b, out}, stream);
    case BinaryOp::kMultiply:
      return LaunchEntries("multiply", ring, limbs, out.outer_count,
                           BinaryOperation<A, BinaryOp::kMultiply>{a, b, out}, stream);
  }
  return absl::InternalError("binary: unchecked operation");
}

template <class A>
absl::Status EntryLaunchers<A>::Negate(const RingTables& ring, const LimbPrimes& limbs,
                                       ConstPolyView a, PolyView out, Stream& stream) {
  return LaunchEntries("negate", ring, limbs, out.outer_count, NegateOperation<A>{a, out}, stream);
}

template <class A>
absl::Status EntryLaunchers<A>::MultiplyAdd(const RingTables& ring, const LimbPrimes& limbs,
                                            ConstPolyView a, ConstPolyView b, PolyView sum,
                                            Stream& stream) {
  return LaunchEntries("multiply_add", ring, limbs, sum.outer_count,
                       MultiplyAddOperation<A>{a, b, sum}, stream);
}

template <class A>
absl::Status EntryLaunchers<A>::MultiplyScalars(const RingTables& ring, const LimbPrimes& limbs,
                                                const LimbScalars& scalars, ConstPolyView a,
                                                PolyView out, Stream& stream) {
  return LaunchEntries("multiply_scalars", ring, limbs, out.outer_count,
                       MultiplyScalarsOperation<A>{scalars, a, out}, stream);
}

template <class A>
absl::Status EntryLaunchers<A>::SubtractScale(const RingTables& ring, const LimbPrimes& limbs,
                                              const LimbScalars& scalars, ConstPolyView a,
                                              ConstPolyView b, PolyView out, Stream& stream) {
  return LaunchEntries("subtract_scale", ring, limbs, out.outer_count,
                       SubtractScaleOperation<A>{scalars, a, b, out}, stream);
}

template <class A>
absl::Status EntryLaunchers<A>::TensorProduct(const RingTables& ring, const LimbPrimes& limbs,
                                              ConstPolyView a, ConstPolyView b, PolyView out,
                                              Stream& stream) {
  const int64_t batch = out.outer_count / 3;
  return LaunchEntries("tensor_product", ring, limbs, batch,
                       TensorProductOperation<A>{batch, a, b, out}, stream);
}

template <class A>
absl::Status EntryLaunchers<A>::Copy(const RingTables& ring, int limb_count, ConstPolyView a,
                                     PolyView out, Stream& stream) {
  // Which primes the limbs belong to does not matter.
  LimbPrimes limbs;
  limbs.count = limb_count;
  return LaunchEntries("copy", ring, limbs, out.outer_count, CopyOperation{a, out}, stream);
}

template <class A>
absl::Status EntryLaunchers<A>::LiftSigned(const RingTables& ring, const LimbPrimes& limbs,
                                           const int64_t* in, int64_t in_outer_stride, PolyView out,
                                           Stream& stream) {
  return LaunchEntries("lift_signed", ring, limbs, out.outer_count,
                       LiftSignedOperation<A>{in, in_outer_stride, out}, stream);
}

template struct EntryLaunchers<math::IntegerArithmetic>;
template struct EntryLaunchers<math::FmaArithmetic>;

}  // namespace cipherd::kernels::cuda
