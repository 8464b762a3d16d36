// Vectors to slots and back, as a program's input or output lays them out.
//
//   // 8 images of 784 pixels in one ciphertext: pixel j of image k in slot 8j + k.
//   SlotLayout layout = {.item_count = 8, .item_stride = 1, .element_count = 784, .element_stride =
//   8}; ASSIGN_OR_RETURN(std::vector<double> slots, PackSlots(layout, 8192, images,
//   "inputs['x']"));
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/programs/program_spec.h"

namespace cipherd::client {

// One vector an item.
using Vectors = std::vector<std::vector<double>>;

// InvalidArgument naming `path` where the layout has no items or no elements, or leaves the slots.
absl::Status CheckLayout(const programs::SlotLayout& layout, int64_t slot_count,
                         std::string_view path);

// Slots up to the last one that the layout names, 0 where it names none. Fewer items than the
// layout has places for are in order: the last one stands in the places that are left. Zeros there
// would not do: a polynomial may leave every bound at an item that nobody has, and a slot that
// overflows takes all others with it. InvalidArgument naming `path`: no item, more items than
// places, an item of another length than element_count, a number that is not finite, a layout
// outside the slots.
absl::StatusOr<std::vector<double>> PackSlots(const programs::SlotLayout& layout,
                                              int64_t slot_count, const Vectors& items,
                                              std::string_view path);

// The first `item_count` items. InvalidArgument naming `path` where there are more than the layout
// has places for, or the layout leaves `slots`.
absl::StatusOr<Vectors> UnpackSlots(const programs::SlotLayout& layout,
                                    std::span<const double> slots, int64_t item_count,
                                    std::string_view path);

}  // namespace cipherd::client
