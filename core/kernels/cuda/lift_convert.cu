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
// Of a multiprocessor: as many as it has registers for, since they wait for memory.
template <int kSteps>
constexpr int kMatrixBlocksAtOnce = kSteps > 2 ? 6 : 8;
// Coefficients of a warp at a time.
constexpr int kMatrixCoefficients = 16;
// Blocks that share out the coefficients of a lift, each with constants of its own.
constexpr unsigned kMatrixBlocks = 512;

// The factors of a group of eight targets in shared memory: H1, L1, H0 and L0 (convert_matrix.cuh),
// for each step the words of the lanes, of target lane / 4 and source 4s + lane % 4.
constexpr int kFactorKinds = 4;
template <int kSteps>
constexpr int kFactorWords = kFactorKinds* kSteps * 32;

// The same on the tensor cores, for up to 4 kSteps source limbs and all targets. A warp has 16
// coefficients at a time; a lane has two of them and every fourth source of these, then two targets
// of both.
template <int kSteps>
__global__ void __launch_bounds__(kMatrixThreads, kMatrixBlocksAtOnce<kSteps>)
    ConvertMatrixKernel(const __grid_constant__ LiftArguments a) {
  using A = math::FmaArithmetic;
  extern __shared__ __align__(16) unsigned char shared_bytes[];
  const int log_n = a.ring.log_n;
  const LimbLift& lift = a.plan.lifts[blockIdx.z / static_cast<uint32_t>(a.batch)];
  const int64_t item = blockIdx.z % static_cast<uint32_t>(a.batch);
  const BasisConversionTables& tables = lift.conversion;
  const int sources = tables.source_count;
  const int groups = (tables.target_count + kMatrixTargets - 1) / kMatrixTargets;
  auto* const constants = reinterpret_cast<TargetConstants*>(shared_bytes);
  auto* const limbs = reinterpret_cast<int64_t*>(constants + groups * kMatrixTargets);
  auto* const factors = reinterpret_cast<double*>(limbs + groups * kMatrixTargets);
  const int thread = static_cast<int>(threadIdx.x);
  // What there is not of the last group is a copy of the first target, and not stored.
  for (int t = thread; t < groups * kMatrixTargets; t += kMatrixThreads) {
    const int j = t < tables.target_count ? t : 0;
    const PrimeConstants& prime = a.ring.primes[tables.target_primes[j]];
    constants[t] = TargetConstants::Make(ArithmeticTables<A>::Modulus(prime),
                                         prime.q - tables.source_product[j]);
    limbs[t] = static_cast<int64_t>(ConvertedLimb(lift, j)) << log_n;
  }
  for (int word = thread; word < groups * 32 * kSteps; word += kMatrixThreads) {
    const int lane = word % 32;
    const int s = word / 32 % kSteps;
    const int group = word / (32 * kSteps);
    const int t = group * kMatrixTargets + lane / 4;
    const int i = kStepSources * s + lane % 4;
    double hat = 0;
    SplitInteger high = {0, 0};
    if (t < tables.target_count && i < sources) {
      const auto m = ArithmeticTables<A>::Modulus(a.ring.primes[tables.target_primes[t]]);
      hat = A::Nearest(A::FromWord(tables.hat[t * sources + i]), m);
      const A::Factor radix = A::FactorOfRoot(A::Nearest(0x1p25, m), m);
      high = Split(A::Nearest(A::MultiplyLazy(hat, radix, m), m));
    }
    const SplitInteger low = Split(hat);
    double* const of_lane = factors + group * kFactorWords<kSteps> + s * 32 + lane;
    of_lane[0 * kSteps * 32] = high.high;
    of_lane[1 * kSteps * 32] = low.high;
    of_lane[2 * kSteps * 32] = high.low;
    of_lane[3 * kSteps * 32] = low.low;
  }
  WaitForPrecedingWork();
  __syncthreads();

  const int lane = thread % 32;
  const uint64_t* const packed = LimbOf(a.packed, item, lift.first_packed, log_n);
  uint64_t* const out = LimbOf(a.out, blockIdx.z, 0, log_n);
  constexpr uint32_t kBlockCoefficients = kMatrixThreads / 32 * kMatrixCoefficients;
  for (uint32_t tile = blockIdx.x * kBlockCoefficients; tile < 1u << log_n;
       tile += gridDim.x * kBlockCoefficients) {
    const uint32_t first = tile + thread / 32 * kMatrixCoefficients + lane / 4;
    DigitFragment<kSteps> high;
    DigitFragment<kSteps> low;
    double quotient[2] = {};
    uint64_t words[kSteps][2] = {};
    CIPHERD_UNROLL
    for (int s = 0; s < kSteps; ++s) {
      const int i = kStepSources * s + lane % 4;
      if (i >= sources) continue;
      CIPHERD_UNROLL
      for (int p = 0; p < 2; ++p) {
        words[s][p] = packed[(static_cast<int64_t>(i) << log_n) + first + 8 * p];
      }
    }
    CIPHERD_UNROLL
    for (int s = 0; s < kSteps; ++s) {
      const int i = kStepSources * s + lane % 4;
      const double inverse = i < sources ? tables.source_inverse[i] : 0;
      CIPHERD_UNROLL
      for (int p = 0; p < 2; ++p) {
        const double digit = A::FromWord(words[s][p]);
        const double term = math::RoundedProduct(digit, inverse);
        const SplitInteger y = Split(digit);
        high.word[s][p] = y.high;
        low.word[s][p] = y.low;
        // In the order of AddToQuotient: adding the zeros of sources that there are not is exact.
        CIPHERD_UNROLL
        for (int k = 0; k < 4; ++k) {
          quotient[p] = math::RoundedSum(quotient[p], __shfl_sync(~0u, term, k, 4));
        }
      }
    }
    const double overflow[2] = {ConversionOverflowDouble(quotient[0]),
                                ConversionOverflowDouble(quotient[1])};
    for (int group = 0; group < groups; ++group) {
      const double* const of_group = factors + group * kFactorWords<kSteps> + lane;
      FactorFragment<kSteps> factor[kFactorKinds];
      CIPHERD_UNROLL
      for (int f = 0; f < kFactorKinds; ++f) {
        CIPHERD_UNROLL
        for (int s = 0; s < kSteps; ++s) factor[f].word[s] = of_group[(f * kSteps + s) * 32];
      }
      SumFragment t1 = {};
      SumFragment t0 = {};
      MultiplyAccumulate(t1, high, factor[0]);
      MultiplyAccumulate(t0, high, factor[2]);
      MultiplyAccumulate(t1, low, factor[1]);
      MultiplyAccumulate(t0, low, factor[3]);
      CIPHERD_UNROLL
      for (int k = 0; k < 2; ++k) {
        const int t = group * kMatrixTargets + 2 * (lane % 4) + k;
        if (t >= tables.target_count) continue;
        const TargetConstants target = constants[t];
        uint64_t* const words_out = out + limbs[t] + first;
        CIPHERD_UNROLL
        for (int p = 0; p < 2; ++p) {
          words_out[8 * p] = A::ToBits(
              target.Combine<kSteps * kStepSources>(t1.word[p][k], t0.word[p][k], overflow[p]));
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
  const size_t groups = (a.plan.target.count + kMatrixTargets - 1) / kMatrixTargets;
  const size_t shared_bytes =
      groups * (kMatrixTargets * (sizeof(TargetConstants) + sizeof(int64_t)) +
                kFactorWords<kSteps> * sizeof(double));
  constexpr unsigned kBlockCoefficients = kMatrixThreads / 32 * kMatrixCoefficients;
  const LaunchShape shape = {
      dim3(std::min((1u << a.ring.log_n) / kBlockCoefficients, kMatrixBlocks), 1,
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
