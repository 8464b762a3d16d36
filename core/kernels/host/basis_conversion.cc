#include <algorithm>
#include <cstdint>

#include "core/kernels/host/launch.h"
#include "core/kernels/host/launchers.h"
#include "core/kernels/host/limb_kernel_choice.h"
#include "core/kernels/poly_access.h"
#include "core/math/fma_arithmetic.h"
#include "core/runtime/host/thread_team.h"

namespace cipherd::kernels::host {

template <class Choice>
absl::Status BasisConversionLaunchers<Choice>::Convert(const RingTables& ring,
                                                       const ring::BasisConversionTables& tables,
                                                       ConstPolyView in, PolyView out,
                                                       Stream& stream) {
  return Launch("convert_basis", stream, [=] {
    const LimbKernels& kernels = Choice::ForConversion(ring, tables);
    const int64_t n = int64_t{1} << ring.log_n;
    // Coefficients of a piece: large rings are shared among threads.
    const int64_t piece = std::max(kConversionGrain, n / 16);
    const int64_t pieces = n <= piece ? 1 : n / piece;
    runtime::host::ThreadTeam::OfProcess().ForEach(out.outer_count * pieces, [&](int64_t i) {
      const int64_t outer = i / pieces;
      const int64_t begin = i % pieces * piece;
      kernels.convert_basis(ring, tables, begin, std::min(n, begin + piece),
                            LimbOf(in, outer, 0, ring.log_n), LimbOf(out, outer, 0, ring.log_n));
    });
  });
}

template struct BasisConversionLaunchers<ScalarChoice<math::IntegerArithmetic>>;
template struct BasisConversionLaunchers<ScalarChoice<math::FmaArithmetic>>;
template struct BasisConversionLaunchers<MixedChoice>;

}  // namespace cipherd::kernels::host
