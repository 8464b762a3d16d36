// Addresses of polynomials and limbs in views.
#pragma once

#include <cstdint>

#include "core/kernels/kernel_table.h"
#include "core/math/host_device.h"

namespace cipherd::kernels {

// Limb `limb` of polynomial `outer`; of the only one where a view is broadcast.
CIPHERD_HD const uint64_t* LimbOf(const ConstPolyView& view, int64_t outer, int limb, int log_n) {
  const int64_t polynomial = view.outer_count == 1 ? 0 : outer * view.outer_stride;
  return view.data + polynomial + (static_cast<int64_t>(limb) << log_n);
}
CIPHERD_HD uint64_t* LimbOf(const PolyView& view, int64_t outer, int limb, int log_n) {
  const int64_t polynomial = view.outer_count == 1 ? 0 : outer * view.outer_stride;
  return view.data + polynomial + (static_cast<int64_t>(limb) << log_n);
}

}  // namespace cipherd::kernels
