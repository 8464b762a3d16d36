#include "core/programs/edge_state.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace cipherd::programs::internal {

std::string ScaleText(double scale) {
  int exponent = 0;
  if (std::frexp(scale, &exponent) == 0.5) return absl::StrCat("2^", exponent - 1);
  return absl::StrFormat("2^%.6f (%.17g)", std::log2(scale), scale);
}

std::string EdgeText(std::string_view name, const EdgeState& state) {
  return absl::StrFormat("'%s' %s at depth %d", std::string(name), ScaleText(state.scale),
                         state.depth);
}

absl::Status CheckScale(const ckks::ContextParameters& parameters, double scale, int depth) {
  if (!std::isfinite(scale) || scale < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("scale: expected at least 1, got ", scale, " at depth ", depth));
  }
  const double log_modulus = parameters.log_q(depth);
  if (std::log2(scale) >= log_modulus - 1) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "scale: expected below half of the modulus, 2^%.2f at depth %d, got %s; rescale earlier",
        log_modulus - 1, depth, ScaleText(scale)));
  }
  return absl::OkStatus();
}

}  // namespace cipherd::programs::internal
