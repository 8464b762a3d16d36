// The transforms of ntt_any_degree.cu: of every degree, at half the speed of those of ntt.cu.
#pragma once

#include "core/kernels/cuda/launchers.h"

namespace cipherd::kernels::cuda {

template <class A>
struct AnyDegreeNtt {
  static absl::Status Forward(const RingTables&, const LimbPrimes&, ConstPolyView in, PolyView out,
                              Stream&);
  static absl::Status Inverse(const RingTables&, const LimbPrimes&, ConstPolyView in, PolyView out,
                              Stream&);
};

}  // namespace cipherd::kernels::cuda
