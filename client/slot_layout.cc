#include "client/slot_layout.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace cipherd::client {
namespace {

using programs::SlotLayout;

// Slots that the layout spans. Counts and strides are those of a program, whose checker bounds
// them; what a peer sends is looked at again here, since addresses follow from it.
absl::StatusOr<int64_t> SpannedSlots(const SlotLayout& layout, int64_t slot_count,
                                     std::string_view path) {
  const int64_t numbers[] = {layout.item_count, layout.item_stride, layout.element_count,
                             layout.element_stride};
  for (int64_t number : numbers) {
    if (number < 0 || number > slot_count) {
      return absl::InvalidArgumentError(absl::StrCat(std::string(path), ": layout has ", number,
                                                     ", expected 0 to ", slot_count,
                                                     " (the slots)"));
    }
  }
  if (layout.item_count == 0 || layout.element_count == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(path), ": layout has no items or no elements"));
  }
  // At most 2 · 2^17 · 2^17.
  const int64_t spanned = layout.element_stride * (layout.element_count - 1) +
                          layout.item_stride * (layout.item_count - 1) + 1;
  if (spanned > slot_count) {
    return absl::InvalidArgumentError(absl::StrCat(std::string(path), ": layout spans ", spanned,
                                                   " slots, expected at most ", slot_count));
  }
  return spanned;
}

}  // namespace

absl::Status CheckLayout(const SlotLayout& layout, int64_t slot_count, std::string_view path) {
  return SpannedSlots(layout, slot_count, path).status();
}

absl::StatusOr<std::vector<double>> PackSlots(const SlotLayout& layout, int64_t slot_count,
                                              const Vectors& items, std::string_view path) {
  CIPHERD_ASSIGN_OR_RETURN(const int64_t spanned, SpannedSlots(layout, slot_count, path));
  if (items.empty() || static_cast<int64_t>(items.size()) > layout.item_count) {
    return absl::InvalidArgumentError(absl::StrCat(
        std::string(path), ": expected 1 to ", layout.item_count, " items, got ", items.size()));
  }
  std::vector<double> slots(spanned, 0.0);
  for (size_t k = 0; k < items.size(); ++k) {
    if (static_cast<int64_t>(items[k].size()) != layout.element_count) {
      return absl::InvalidArgumentError(absl::StrCat(std::string(path), "[", k, "]: expected ",
                                                     layout.element_count, " elements, got ",
                                                     items[k].size()));
    }
    for (size_t j = 0; j < items[k].size(); ++j) {
      if (!std::isfinite(items[k][j])) {
        return absl::InvalidArgumentError(
            absl::StrCat(std::string(path), "[", k, "][", j, "]: expected a finite number"));
      }
    }
  }
  for (int64_t k = 0; k < layout.item_count; ++k) {
    const std::vector<double>& item = items[std::min(static_cast<size_t>(k), items.size() - 1)];
    for (int64_t j = 0; j < layout.element_count; ++j) {
      slots[layout.element_stride * j + layout.item_stride * k] = item[j];
    }
  }
  return slots;
}

absl::StatusOr<Vectors> UnpackSlots(const SlotLayout& layout, std::span<const double> slots,
                                    int64_t item_count, std::string_view path) {
  CIPHERD_RETURN_IF_ERROR(SpannedSlots(layout, static_cast<int64_t>(slots.size()), path).status());
  if (item_count < 0 || item_count > layout.item_count) {
    return absl::InvalidArgumentError(absl::StrCat(std::string(path), ": expected at most ",
                                                   layout.item_count, " items, got ", item_count));
  }
  Vectors items(item_count, std::vector<double>(layout.element_count));
  for (int64_t k = 0; k < item_count; ++k) {
    for (int64_t j = 0; j < layout.element_count; ++j) {
      items[k][j] = slots[layout.element_stride * j + layout.item_stride * k];
    }
  }
  return items;
}

}  // namespace cipherd::client
