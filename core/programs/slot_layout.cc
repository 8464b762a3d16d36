#include "core/programs/slot_layout.h"

#include <vector>

#include "absl/strings/str_cat.h"

namespace cipherd::programs::internal {
namespace {

template <typename... Parts>
absl::Status Refuse(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("layout: ", parts...));
}

}  // namespace

absl::Status CheckLayout(const SlotLayout& layout, int64_t slot_count) {
  if (layout.item_count < 1 || layout.item_stride < 1 || layout.element_count < 1 ||
      layout.element_stride < 1) {
    return Refuse("expected counts and strides of at least 1, got ", layout.item_count, " items ",
                  layout.item_stride, " apart, ", layout.element_count, " elements ",
                  layout.element_stride, " apart");
  }
  // Divisions, since products of untrusted factors can wrap.
  const int64_t last_slot = slot_count - 1;
  const bool items_fit = layout.item_count - 1 <= last_slot / layout.item_stride;
  const bool elements_fit = layout.element_count - 1 <= last_slot / layout.element_stride;
  if (!items_fit || !elements_fit ||
      (layout.item_count - 1) * layout.item_stride +
              (layout.element_count - 1) * layout.element_stride >
          last_slot) {
    return Refuse("expected slots below ", slot_count, ", but element ", layout.element_count - 1,
                  " of item ", layout.item_count - 1, " lies beyond");
  }
  std::vector<bool> taken(slot_count, false);
  for (int64_t item = 0; item < layout.item_count; ++item) {
    for (int64_t element = 0; element < layout.element_count; ++element) {
      const int64_t slot = item * layout.item_stride + element * layout.element_stride;
      if (taken[slot]) {
        return Refuse("slot ", slot, " is given twice, the second time to element ", element,
                      " of item ", item);
      }
      taken[slot] = true;
    }
  }
  return absl::OkStatus();
}

}  // namespace cipherd::programs::internal
