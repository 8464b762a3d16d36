#include "client/planned_range.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "proto/codec/error_detail.h"

namespace cipherd::client {
namespace {

absl::Status OutOfRange(std::string_view path, int64_t item, int64_t element,
                        const std::string& what) {
  const std::string place = absl::StrCat(std::string(path), "[", item, "][", element, "]");
  return codec::WithErrorDetail(absl::OutOfRangeError(absl::StrCat(place, ": ", what)),
                                v1::ERROR_REASON_UNSPECIFIED, place);
}

absl::Status CheckNumbers(const programs::ProgramInput& input, std::span<const double> numbers,
                          std::string_view path, int64_t first_item) {
  if (!input.states_range()) return absl::OkStatus();
  const auto outside = std::find_if_not(numbers.begin(), numbers.end(), [&](double number) {
    return number >= input.lower && number <= input.upper;
  });
  if (outside == numbers.end()) return absl::OkStatus();
  const int64_t place = outside - numbers.begin();
  const int64_t element_count = input.layout.element_count;
  return OutOfRange(
      path, first_item + place / element_count, place % element_count,
      absl::StrFormat("expected a number from %g to %g, what the program was planned for: results "
                      "of others may be wrong. Is the unit that of the program's samples? Else "
                      "leave the item out, or plan with samples that reach as far",
                      input.lower, input.upper));
}

}  // namespace

absl::Status CheckInputRange(const programs::ProgramInput& input, const Vectors& items,
                             std::string_view path) {
  for (size_t k = 0; k < items.size(); ++k) {
    CIPHERD_RETURN_IF_ERROR(CheckNumbers(input, items[k], path, static_cast<int64_t>(k)));
  }
  return absl::OkStatus();
}

absl::Status CheckInputRange(const programs::ProgramInput& input, std::span<const double> numbers,
                             std::string_view path) {
  return CheckNumbers(input, numbers, path, 0);
}

absl::Status CheckOutputRange(const programs::ProgramOutput& output, const Vectors& items,
                              std::string_view path, int64_t first_item) {
  if (output.magnitude_bound == 0) return absl::OkStatus();
  const double most = kMostTimesMagnitudeBound * output.magnitude_bound;
  for (size_t k = 0; k < items.size(); ++k) {
    const auto outside = std::find_if_not(items[k].begin(), items[k].end(),
                                          [&](double number) { return std::abs(number) <= most; });
    if (outside == items[k].end()) continue;
    return OutOfRange(
        path, first_item + static_cast<int64_t>(k), outside - items[k].begin(),
        absl::StrFormat("expected a magnitude of at most %g, %g times what the program was planned "
                        "for: an input is unlike the program's samples, and with it every result "
                        "of this request may be wrong. Leave that item out, or plan with samples "
                        "like it",
                        most, kMostTimesMagnitudeBound));
  }
  return absl::OkStatus();
}

}  // namespace cipherd::client
