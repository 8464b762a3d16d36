// The conversion of a lift as launches of its own: step 3 of lift.cu where lifts have many source
// limbs. Reads y_i as canonical words; writes residues in the range where a forward transform may
// begin. Unfused: the rest of convert_basis.
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "core/kernels/basis_conversion_body.h"
#include "core/kernels/cuda/convert_matrix.cuh"
#include "core/kernels/cuda/launch.cuh"
#include "core/kernels/cuda/lift_arguments.cuh"
#include "core/kernels/cuda/ntt_pass.cuh"
#include "core/kernels/poly_access.h"
#include "core/math/fma_arithmetic.h"
#include "core/math/integer_arithmetic.h"

namespace cipherd::kernels::cuda {
namespace {

using ring::BasisConversionTables;
using ring::PrimeConstants;

// Target limb of a lift by number of its conversion: the `number`-th that is not the lift's own.
__device__ int ConvertedLimb(const LimbLift& lift, int number) {
  int limb = 0;
  for (uint64_t own = lift.own_limbs;; own >>= 1, ++limb) {
    if ((own & 1) == 0 && number-- == 0) return limb;
  }
}

constexpr int kConvertThreads = 128;
// Coefficients of a thread, kConvertThreads apart.
constexpr int kConvertPoints = 2;
// Targets of a block.
constexpr int kConvertTargets = 12;

// Converts up to kSources residues y_i of each coefficient to a run of targets. The constants of a
// block lie in shared memory, 0 for sources that there are not.
template <class A, int kSources>
__global__ void __launch_bounds__(kConvertThreads)
    ConvertKernel(const __grid_constant__ LiftArguments a) {
  __shared__ uint64_t hats[kConvertTargets][kSources];
  __shared__ uint64_t overflow_factors[kConvertTargets];
  __shared__ int limbs[kConvertTargets];
  const int log_n = a.ring.log_n;
  const LimbLift& lift = a.plan.lifts[blockIdx.z / static_cast<uint32_t>(a.batch)];
  const int64_t item = blockIdx.z % static_cast<uint32_t>(a.batch);
  const BasisConversionTables& tables = lift.conversion;
  const int begin = static_cast<int>(blockIdx.y) * kConvertTargets;
  const int count = min(kConvertTargets, tables.target_count - begin);
  if (count <= 0) return;
  const int sources = tables.source_count;
  const int thread = static_cast<int>(threadIdx.x);
  for (int w = thread; w < count * kSources; w += kConvertThreads) {
    const int i = w % kSources;
    hats[w / kSources][i] = i < sources ? tables.hat[(begin + w / kSources) * sources + i] : 0;
  }
  if (thread < count) {
    const PrimeConstants& prime = a.ring.primes[tables.target_primes[begin + thread]];
    overflow_factors[thread] = prime.q - tables.source_product[begin + thread];
    limbs[thread] = ConvertedLimb(lift, begin + thread);
  }
  WaitForPrecedingWork();
  __syncthreads();

  const uint32_t first = blockIdx.x * (kConvertThreads * kConvertPoints) + threadIdx.x;
  uint64_t y[kConvertPoints][kSources];
  double quotient[kConvertPoints] = {};
  CIPHERD_UNROLL
  for (int i = 0; i < kSources; ++i) {
    const uint64_t* const packed = LimbOf(a.packed, item, lift.first_packed + i, log_n) + first;
    CIPHERD_UNROLL
    for (int k = 0; k < kConvertPoints; ++k) {
      y[k][i] = i < sources ? packed[k * kConvertThreads] : 0;
    }
  }
  CIPHERD_UNROLL
  for (int i = 0; i < kSources; ++i) {
    if (i >= sources) break;
    CIPHERD_UNROLL
    for (int k = 0; k < kConvertPoints; ++k) {
      AddToQuotient<A>(A::FromWord(y[k][i]), tables, i, quotient[k]);
    }
  }
  uint64_t overflow[kConvertPoints];
  CIPHERD_UNROLL
  for (int k = 0; k < kConvertPoints; ++k) overflow[k] = ConversionOverflow(quotient[k]);
  for (int j = 0; j < count; ++j) {
    const auto m = ArithmeticTables<A>::Modulus(a.ring.primes[a.plan.target.prime[limbs[j]]]);
    typename A::ProductSum sum[kConvertPoints] = {};
    CIPHERD_UNROLL
    for (int i = 0; i < kSources; ++i) {
      const uint64_t hat = hats[j][i];
      CIPHERD_UNROLL
      for (int k = 0; k < kConvertPoints; ++k) A::AddWordsToSum(y[k][i], hat, sum[k]);
    }
    uint64_t* const out = LimbOf(a.out, blockIdx.z, limbs[j], log_n) + first;
    CIPHERD_UNROLL
    for (int k = 0; k < kConvertPoints; ++k) {
      A::AddWordsToSum(overflow[k], overflow_factors[j], sum[k]);
      out[k * kConvertThreads] = A::ToBits(A::ReduceSum(sum[k], m));
    }
  }
}

constexpr int kMatrixThreads = 128;
// Groups of 8 coefficients of a warp.
constexpr int kMatrixGroups = 4;
constexpr int kMatrixCoefficients = kMatrixThreads / 32 * kMatrixGroups * 8;
// Blocks that share out the coefficients of a lift, each with constants of its own.
constexpr unsigned kMatrixBlocks = 512;

// The same on the tensor cores (convert_matrix.cuh), for up to 4 kSteps source limbs and all
// targets. A warp has 8 coefficients a group; a lane has one of them and every fourth source of it,
// then two targets of it.
template <int kSteps>
__global__ void __launch_bounds__(kMatrixThreads)
    ConvertMatrixKernel(const __grid_constant__ LiftArguments a) {
  using A = math::FmaArithmetic;
  constexpr int kSources = 4 * kSteps;
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  const int log_n = a.ring.log_n;
  const LimbLift& lift = a.plan.lifts[blockIdx.z / static_cast<uint32_t>(a.batch)];
  const int64_t item = blockIdx.z % static_cast<uint32_t>(a.batch);
  const BasisConversionTables& tables = lift.conversion;
  const int sources = tables.source_count;
  // Targets in groups of 8: what there is not is a copy of the first one, and not stored.
  const int rounded_targets = (tables.target_count + 7) / 8 * 8;
  auto* const constants = reinterpret_cast<TargetConstants*>(shared_bytes);
  auto* const hats = reinterpret_cast<SplitInteger*>(constants + rounded_targets);
  auto* const limbs = reinterpret_cast<int*>(hats + rounded_targets * kSources);
  const int thread = static_cast<int>(threadIdx.x);
  for (int t = thread; t < rounded_targets; t += kMatrixThreads) {
    const int j = t < tables.target_count ? t : 0;
    const PrimeConstants& prime = a.ring.primes[tables.target_primes[j]];
    constants[t] = TargetConstants::Make(ArithmeticTables<A>::Modulus(prime),
                                         prime.q - tables.source_product[j]);
    limbs[t] = ConvertedLimb(lift, j);
  }
  for (int w = thread; w < rounded_targets * kSources; w += kMatrixThreads) {
    const int j = w / kSources;
    const int i = w % kSources;
    hats[w] = {0, 0};
    if (j < tables.target_count && i < sources) {
      const PrimeConstants& prime = a.ring.primes[tables.target_primes[j]];
      hats[w] = Split(A::Nearest(A::FromWord(tables.hat[j * sources + i]),
                                 ArithmeticTables<A>::Modulus(prime)));
    }
  }
  WaitForPrecedingWork();
  __syncthreads();

  const int lane = thread % 32;
  const int lane_row = lane / 4;
  const int lane_column = lane % 4;
  for (uint32_t tile = blockIdx.x * kMatrixCoefficients; tile < 1u << log_n;
       tile += gridDim.x * kMatrixCoefficients) {
    const uint32_t first = tile + thread / 32 * (kMatrixGroups * 8) + lane_row;
    SplitInteger y[kMatrixGroups][kSteps];
    double overflow[kMatrixGroups];
    CIPHERD_UNROLL
    for (int g = 0; g < kMatrixGroups; ++g) {
      double quotient = 0;
      CIPHERD_UNROLL
      for (int s = 0; s < kSteps; ++s) {
        const int i = 4 * s + lane_column;
        double digit = 0;
        double term = 0;
        if (i < sources) {
          digit = A::FromWord(LimbOf(a.packed, item, lift.first_packed + i, log_n)[first + g * 8]);
          term = math::RoundedProduct(digit, tables.source_inverse[i]);
        }
        y[g][s] = Split(digit);
        // In the order of AddToQuotient: adding the zeros of sources that there are not is exact.
        CIPHERD_UNROLL
        for (int k = 0; k < 4; ++k) {
          quotient = math::RoundedSum(quotient, __shfl_sync(~0u, term, k, 4));
        }
      }
      overflow[g] = ConversionOverflowDouble(quotient);
    }

    for (int t = 0; t < rounded_targets; t += 8) {
      SplitInteger w[kSteps];
      CIPHERD_UNROLL
      for (int s = 0; s < kSteps; ++s) w[s] = hats[(t + lane_row) * kSources + 4 * s + lane_column];
      double sum[kMatrixGroups][3][2] = {};
      CIPHERD_UNROLL
      for (int g = 0; g < kMatrixGroups; ++g) {
        CIPHERD_UNROLL
        for (int s = 0; s < kSteps; ++s) {
          MultiplyAccumulate(sum[g][0], y[g][s].high, w[s].high);
          MultiplyAccumulate(sum[g][1], y[g][s].high, w[s].low);
          MultiplyAccumulate(sum[g][2], y[g][s].low, w[s].low);
          MultiplyAccumulate(sum[g][1], y[g][s].low, w[s].high);
        }
      }
      CIPHERD_UNROLL
      for (int k = 0; k < 2; ++k) {
        const int j = t + 2 * lane_column + k;
        if (j >= tables.target_count) continue;
        const TargetConstants target = constants[j];
        uint64_t* const out = LimbOf(a.out, blockIdx.z, limbs[j], log_n) + first;
        CIPHERD_UNROLL
        for (int g = 0; g < kMatrixGroups; ++g) {
          out[g * 8] =
              A::ToBits(target.Combine(sum[g][0][k], sum[g][1][k], sum[g][2][k], overflow[g]));
        }
      }
    }
  }
}

template <class A, int kSources>
absl::Status LaunchConvert(const LiftArguments& a, Stream& stream) {
  const int groups = (a.plan.target.count + kConvertTargets - 1) / kConvertTargets;
  const LaunchShape shape = {
      dim3((1u << a.ring.log_n) / (kConvertThreads * kConvertPoints), static_cast<unsigned>(groups),
           static_cast<unsigned>(a.out.outer_count)),
      kConvertThreads};
  return LaunchEarly("convert", stream, shape, ConvertKernel<A, kSources>, a);
}

template <int kSteps>
absl::Status LaunchConvertMatrix(const LiftArguments& a, Stream& stream) {
  const size_t targets = (a.plan.target.count + 7) / 8 * 8;
  const size_t shared_bytes =
      targets * (sizeof(TargetConstants) + 4 * kSteps * sizeof(SplitInteger) + sizeof(int));
  const LaunchShape shape = {
      dim3(std::min((1u << a.ring.log_n) / kMatrixCoefficients, kMatrixBlocks), 1,
           static_cast<unsigned>(a.out.outer_count)),
      kMatrixThreads, shared_bytes};
  return LaunchEarly("convert_matrix", stream, shape, ConvertMatrixKernel<kSteps>, a);
}

}  // namespace

// With the least instance that has room for `sources`.
template <class A>
absl::Status LaunchConversion(int sources, const LiftArguments& a, Stream& stream) {
  if constexpr (std::is_same_v<A, math::FmaArithmetic>) {
    if (sources <= 4) return LaunchConvertMatrix<1>(a, stream);
    if (sources <= 8) return LaunchConvertMatrix<2>(a, stream);
    if (sources <= kMaxMatrixSources) return LaunchConvertMatrix<3>(a, stream);
  }
  if (sources <= 4) return LaunchConvert<A, 4>(a, stream);
  if (sources <= 6) return LaunchConvert<A, 6>(a, stream);
  if (sources <= 8) return LaunchConvert<A, 8>(a, stream);
  if (sources <= 12) return LaunchConvert<A, 12>(a, stream);
  return LaunchConvert<A, kMaxFusedSources>(a, stream);
}

template absl::Status LaunchConversion<math::IntegerArithmetic>(int, const LiftArguments&, Stream&);
template absl::Status LaunchConversion<math::FmaArithmetic>(int, const LiftArguments&, Stream&);

}  // namespace cipherd::kernels::cuda
