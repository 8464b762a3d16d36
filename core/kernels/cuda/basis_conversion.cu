// A thread converts one coefficient to a few target primes. Its digits y_i lie in shared memory, in
// a column of its own, so that no thread waits for another. Blocks of other targets compute the
// digits again: that costs a fraction of the sums and fills the chip when there are few
// coefficients.
#include <cstdint>

#include "core/kernels/arithmetic_tables.h"
#include "core/kernels/basis_conversion_body.h"
#include "core/kernels/cuda/launch.cuh"
#include "core/kernels/cuda/launchers.h"
#include "core/kernels/poly_access.h"
#include "core/math/fma_arithmetic.h"
#include "core/math/integer_arithmetic.h"

namespace cipherd::kernels::cuda {
namespace {

using ring::BasisConversionTables;

// 64 primes take 32 KiB of digits.
constexpr unsigned kThreads = 64;
constexpr int kTargetsPerBlock = 4;

template <class A>
__global__ void __launch_bounds__(kThreads)
    ConvertKernel(const __grid_constant__ RingTables ring,
                  const __grid_constant__ BasisConversionTables tables,
                  const __grid_constant__ ConstPolyView in, const __grid_constant__ PolyView out) {
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  auto* const column = reinterpret_cast<uint64_t*>(shared_bytes) + threadIdx.x;
  const uint32_t coefficient = blockIdx.x * kThreads + threadIdx.x;
  if (coefficient >= uint32_t{1} << ring.log_n) return;
  const auto outer = static_cast<int64_t>(blockIdx.z);

  double quotient = 0;
  for (int i = 0; i < tables.source_count; ++i) {
    const auto m = ArithmeticTables<A>::Modulus(ring.primes[tables.source_primes[i]]);
    const uint64_t x = LimbOf(in, outer, i, ring.log_n)[coefficient];
    const auto y = ConversionDigit<A>(A::FromWord(x), tables, i, m);
    AddToQuotient<A>(y, tables, i, quotient);
    column[i * kThreads] = A::ToWord(y);
  }
  const uint64_t overflow = ConversionOverflow(quotient);
  const int begin = static_cast<int>(blockIdx.y) * kTargetsPerBlock;
  const int end = min(begin + kTargetsPerBlock, tables.target_count);
  for (int j = begin; j < end; ++j) {
    const auto m = ArithmeticTables<A>::Modulus(ring.primes[tables.target_primes[j]]);
    LimbOf(out, outer, j, ring.log_n)[coefficient] = A::ToWord(ConversionTarget<A>(
        [column](int i) { return column[i * kThreads]; }, overflow, tables, j, m));
  }
}

}  // namespace

template <class A>
absl::Status BasisConversionLaunchers<A>::Convert(const RingTables& ring,
                                                  const BasisConversionTables& tables,
                                                  ConstPolyView in, PolyView out, Stream& stream) {
  const unsigned n = 1u << ring.log_n;
  const LaunchShape shape = {
      dim3((n + kThreads - 1) / kThreads,
           static_cast<unsigned>((tables.target_count + kTargetsPerBlock - 1) / kTargetsPerBlock),
           static_cast<unsigned>(out.outer_count)),
      kThreads, tables.source_count * kThreads * sizeof(uint64_t)};
  return Launch("convert_basis", stream, shape, ConvertKernel<A>, ring, tables, in, out);
}

template struct BasisConversionLaunchers<math::IntegerArithmetic>;
template struct BasisConversionLaunchers<math::FmaArithmetic>;

}  // namespace cipherd::kernels::cuda
