// What the launches of a lift (lift.cu) share: their arguments, and the steps that lie in files of
// their own.
#pragma once

#include <cstdint>

#include "core/kernels/cuda/launch.cuh"
#include "core/kernels/cuda/lift.h"
#include "core/kernels/cuda/ntt_pass.cuh"

namespace cipherd::kernels::cuda {

struct LiftArguments {
  RingTables ring;
  LiftPlan plan;
  HeadAddend head;
  int64_t batch;
  ConstPolyView in;
  PolyView packed;
  PolyView out;
};

// A block a tile of every limb of every polynomial, smaller tiles where there are fewer than
// few_blocks.
inline LaunchShape TileShape(const LiftArguments& a, int64_t limb_count, int64_t outer_count,
                             int64_t few_blocks = kFewBlocks) {
  const int threads = TileThreadsFor(a.ring.log_n, limb_count * outer_count, few_blocks);
  return {dim3((1u << a.ring.log_n) / TileWords(threads), static_cast<unsigned>(limb_count),
               static_cast<unsigned>(outer_count)),
          static_cast<unsigned>(threads)};
}

// Steps 1 and 2 (lift_source.cu).
template <class A>
absl::Status LaunchSources(const LiftArguments& a, Stream& stream);

// Step 3 by itself, `sources` limbs at most in a lift (lift_convert.cu).
template <class A>
absl::Status LaunchConversion(int sources, const LiftArguments& a, Stream& stream);

}  // namespace cipherd::kernels::cuda
