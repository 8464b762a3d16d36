#include "core/planning/plan.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/planning/circuit_check.h"
#include "core/planning/context_choice.h"
#include "core/planning/depth_plan.h"
#include "core/planning/placement.h"
#include "core/planning/span_choice.h"

namespace cipherd::planning {
namespace {

// Scales that are tried begin here: below, rounding alone is felt.
constexpr int kLeastLog2Scale = 24;
constexpr int kMostPrimeBits = 60;
// Of primes that the faster of the two arithmetics takes (core/math/fma_arithmetic.h).
constexpr int kMostFmaPrimeBits = 49;

absl::Status CheckOptions(const PlanOptions& options) {
  if (!(options.max_error > 0) || !std::isfinite(options.max_error)) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_error: expected a positive number, got ", options.max_error));
  }
  if (options.min_item_count < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("min_item_count: expected at least 1, got ", options.min_item_count));
  }
  return absl::OkStatus();
}

// Bits that the base prime has beyond the scale: the largest value of the last depth, its sign, and
// one to spare.
int HeadroomBits(const Circuit& circuit, const DepthPlan& depths,
                 const EdgeMagnitudes& magnitudes) {
  double largest = 1;
  for (const auto& [edge, depth] : depths.depth) {
    const auto magnitude = magnitudes.find(edge);
    if (depth == depths.total_depth && magnitude != magnitudes.end()) {
      largest = std::max(largest, magnitude->second);
    }
  }
  for (const CircuitOutput& output : circuit.outputs) {
    largest = std::max(largest, output.magnitude_bound);
  }
  return static_cast<int>(std::ceil(std::log2(largest))) + 2;
}

struct ContextAndError {
  ckks::ContextParameters context;
  double error = 0;
};

class ContextSearch {
 public:
  ContextSearch(const Circuit& circuit, const DepthPlan& depths, const EdgeMagnitudes& magnitudes,
                const PlanOptions& options)
      : circuit_(circuit),
        magnitudes_(magnitudes),
        options_(options),
        headroom_bits_(HeadroomBits(circuit, depths, magnitudes)),
        needs_{.depth = depths.total_depth,
               .slot_count = circuit.position_count * options.min_item_count,
               .min_log_n = options.min_log_n,
               .max_log_n = options.max_log_n} {}

  // The least scale whose error is small enough: less precision never needs a larger context. Then
  // the largest base prime that costs nothing.
  absl::StatusOr<ContextAndError> Search() {
    CIPHERD_ASSIGN_OR_RETURN(const ContextAndError least, SearchScale());
    const int least_bits = needs_.base_prime_bits;
    const int most_bits = least_bits <= kMostFmaPrimeBits ? kMostFmaPrimeBits : kMostPrimeBits;
    for (int bits = most_bits; bits > least_bits; --bits) {
      const absl::StatusOr<ContextAndError> found = Try(needs_.log2_scale, bits);
      if (found.ok() && CostsAsMuch(found->context, least.context) &&
          (options_.log2_scale || found->error <= options_.max_error)) {
        return found;
      }
    }
    return least;
  }

 private:
  static bool CostsAsMuch(const ckks::ContextParameters& a, const ckks::ContextParameters& b) {
    return a.log_n == b.log_n && a.p_count() == b.p_count() && a.digits == b.digits;
  }

  absl::StatusOr<ContextAndError> SearchScale() {
    if (options_.log2_scale) {
      return Try(*options_.log2_scale, *options_.log2_scale + headroom_bits_);
    }
    absl::Status reason = absl::ResourceExhaustedError(
        absl::StrCat("magnitudes: expected values that a prime of ", kMostPrimeBits,
                     " bits holds, got 2^", headroom_bits_ - 2, " at the last depth"));
    for (int log2_scale = kLeastLog2Scale; log2_scale + headroom_bits_ <= kMostPrimeBits;
         ++log2_scale) {
      absl::StatusOr<ContextAndError> found = Try(log2_scale, log2_scale + headroom_bits_);
      if (found.ok() && found->error <= options_.max_error) return found;
      if (!found.ok() && !absl::IsResourceExhausted(found.status())) return found;
      reason = found.ok()
                   ? absl::ResourceExhaustedError(absl::StrCat(
                         "max_error: expected at least ", found->error, " where values reach 2^",
                         headroom_bits_ - 2, " at the last depth, got ", options_.max_error))
                   : found.status();
    }
    return reason;
  }

  absl::StatusOr<ContextAndError> Try(int log2_scale, int base_prime_bits) {
    needs_.log2_scale = log2_scale;
    needs_.base_prime_bits = base_prime_bits;
    ContextAndError found;
    CIPHERD_ASSIGN_OR_RETURN(found.context, ChooseContext(needs_));
    const ErrorModel model = {.log_n = found.context.log_n,
                              .log2_scale = static_cast<double>(log2_scale),
                              .digit_count = static_cast<int>(found.context.digits.size()),
                              .log2_digit_over_p = Log2DigitOverP(found.context)};
    CIPHERD_ASSIGN_OR_RETURN(found.error, EstimateError(circuit_, magnitudes_, model));
    return found;
  }

  const Circuit& circuit_;
  const EdgeMagnitudes& magnitudes_;
  const PlanOptions& options_;
  const int headroom_bits_;
  ContextNeeds needs_;
};

}  // namespace

absl::StatusOr<Plan> MakePlan(const Circuit& circuit, const EdgeMagnitudes& magnitudes,
                              const PlanOptions& options) {
  CIPHERD_RETURN_IF_ERROR(CheckOptions(options));
  CIPHERD_RETURN_IF_ERROR(CheckCircuit(circuit));
  const DepthPlan depths = PlanDepths(circuit);
  const BabySpans spans = ChooseSpans(circuit);
  CIPHERD_ASSIGN_OR_RETURN(const ContextAndError found,
                           ContextSearch(circuit, depths, magnitudes, options).Search());
  CIPHERD_ASSIGN_OR_RETURN(PlacedCircuit placed,
                           PlaceCircuit(circuit, depths, found.context, spans));

  programs::ProgramSpec spec;
  spec.name = circuit.name;
  spec.version = circuit.version;
  spec.description = circuit.description;
  spec.context = found.context;
  spec.constants_file = options.constants_file;
  spec.inputs = std::move(placed.inputs);
  spec.operations = std::move(placed.operations);
  spec.outputs = std::move(placed.outputs);
  Plan plan;
  plan.item_count = found.context.slot_count() / circuit.position_count;
  plan.estimated_error = found.error;
  CIPHERD_ASSIGN_OR_RETURN(plan.program,
                           programs::CheckProgram(std::move(spec), std::move(placed.constants),
                                                  ckks::SecurityPolicy::k128BitClassical));
  return plan;
}

}  // namespace cipherd::planning
