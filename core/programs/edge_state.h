// What is known of an edge before anything runs, and how messages say it.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "core/ckks/context_parameters.h"

namespace cipherd::programs {

// Every edge is a ciphertext in the NTT domain.
struct EdgeState {
  int depth = 0;
  double scale = 0;
  int component_count = 2;

  // Scales by value; a lawful scale is neither NaN nor zero, so that equals bits.
  bool operator==(const EdgeState&) const = default;
};

namespace internal {

// "2^45", or "2^41.999998 (4398038450000)" with all digits where it is no power of two.
std::string ScaleText(double scale);

// "'h' 2^45 at depth 1".
std::string EdgeText(std::string_view name, const EdgeState& state);

// InvalidArgument unless 1 <= scale < Q/2 at the depth: a message of 1 survives neither below nor
// above.
absl::Status CheckScale(const ckks::ContextParameters& parameters, double scale, int depth);

}  // namespace internal
}  // namespace cipherd::programs
