#include "core/ckks/evaluation_keys.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace cipherd::ckks {

KeyId KeyId::Rotation(int64_t step, int64_t slot_count) {
  return {value::ValueType::kRotationKey, ((step % slot_count) + slot_count) % slot_count};
}

std::string KeyId::ToString() const {
  switch (type) {
    case value::ValueType::kRelinearizationKey:
      return "relinearization";
    case value::ValueType::kRotationKey:
      return absl::StrCat("rotation(", rotation_step, ")");
    case value::ValueType::kConjugationKey:
      return "conjugation";
    default:
      return std::string(value::ToString(type));
  }
}

KeyLayout::KeyLayout(std::vector<KeyId> ids) : ids_(std::move(ids)) {
  std::sort(ids_.begin(), ids_.end());
  ids_.erase(std::unique(ids_.begin(), ids_.end()), ids_.end());
}

absl::StatusOr<int> KeyLayout::SlotOf(const KeyId& id) const {
  const auto found = std::lower_bound(ids_.begin(), ids_.end(), id);
  if (found == ids_.end() || *found != id) {
    return absl::FailedPreconditionError(absl::StrCat("key ", id.ToString(), " is not among the ",
                                                      ids_.size(), " keys of the table"));
  }
  return static_cast<int>(found - ids_.begin());
}

}  // namespace cipherd::ckks
