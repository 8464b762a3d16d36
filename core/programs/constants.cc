#include "core/programs/constants.h"

#include "absl/strings/str_cat.h"

namespace cipherd::programs {

absl::StatusOr<int64_t> ExpandedLength(int64_t length, const SlotExpansion& expansion,
                                       int64_t slot_count) {
  if (length < 1) return absl::InvalidArgumentError("expected at least one number, got none");
  if (expansion.repeat < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a repeat of at least 1, got ", expansion.repeat));
  }
  // Compared by division: both factors come from files.
  if (length > slot_count || expansion.repeat > slot_count / length) {
    return absl::InvalidArgumentError(absl::StrCat("expected at most ", slot_count, " slots, got ",
                                                   length, " numbers repeated ", expansion.repeat,
                                                   " times"));
  }
  const int64_t period = length * expansion.repeat;
  if (!expansion.tile) return period;
  if (slot_count % period != 0) {
    return absl::InvalidArgumentError(absl::StrCat("expected a tile whose length divides ",
                                                   slot_count, ", got ", period, " slots"));
  }
  return slot_count;
}

std::vector<double> ExpandRow(const value::Tensor& constant, int64_t row,
                              const SlotExpansion& expansion, int64_t slot_count) {
  const int64_t length = constant.shape().back();
  const int64_t period = length * expansion.repeat;
  const int64_t first = row * length;
  std::vector<double> slots(slot_count, 0.0);
  const int64_t filled = expansion.tile ? slot_count : period;
  for (int64_t slot = 0; slot < filled; ++slot) {
    const int64_t index = first + slot % period / expansion.repeat;
    slots[slot] = constant.dtype() == value::DType::kFloat64
                      ? constant.data_as<const double>()[index]
                      : static_cast<double>(constant.data_as<const float>()[index]);
  }
  return slots;
}

}  // namespace cipherd::programs
