#include "core/planning/model_ranges.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "core/planning/polynomial_forms.h"

namespace cipherd::planning {
namespace {

// Of the width of a range, at either end: what roundings of a normalised feature amount to.
constexpr double kRounding = 1e-9;

RangeExcess CountOutside(const ModelOperation& operation,
                         const std::vector<std::vector<double>>& items) {
  const Polynomial& polynomial = operation.polynomial;
  const double slack = kRounding * (polynomial.upper - polynomial.lower);
  RangeExcess excess = {.operation = operation.name,
                        .lower = polynomial.lower,
                        .upper = polynomial.upper,
                        .least_argument = INFINITY,
                        .largest_argument = -INFINITY};
  for (const std::vector<double>& numbers : items) {
    for (double number : numbers) {
      excess.least_argument = std::min(excess.least_argument, number);
      excess.largest_argument = std::max(excess.largest_argument, number);
      const bool is_inside =
          number >= polynomial.lower - slack && number <= polynomial.upper + slack;
      if (!is_inside) ++excess.outside_count;
      ++excess.argument_count;
    }
  }
  return excess;
}

}  // namespace

std::string RangeExcess::ToString() const {
  return absl::StrFormat(
      "operation '%s': %d of %d arguments are outside [%g, %g], where the polynomial is fitted: "
      "they reach from %.4g to %.4g; fit it over a larger range, or scale its argument",
      operation, outside_count, argument_count, lower, upper, least_argument, largest_argument);
}

std::vector<RangeExcess> FindRangeExcesses(const Model& model, const TensorBatch& values) {
  std::vector<RangeExcess> excesses;
  for (const ModelOperation& operation : model.operations) {
    if (operation.kind != ModelKind::kPolynomial) continue;
    // A line is what it is everywhere.
    if (Trimmed(operation.polynomial).coefficients.size() <= 2) continue;
    RangeExcess excess = CountOutside(operation, values.find(operation.a)->second);
    if (excess.outside_count > 0) excesses.push_back(std::move(excess));
  }
  return excesses;
}

}  // namespace cipherd::planning
