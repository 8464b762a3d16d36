#include "client/slot_layout.h"

#include <limits>

#include "tests/testing/status_matchers.h"

namespace cipherd::client {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;

constexpr programs::SlotLayout kInterleaved = {
    .item_count = 3, .item_stride = 1, .element_count = 4, .element_stride = 3};

TEST(SlotLayoutTest, ElementJOfItemKIsInItsSlot) {
  const Vectors items = {{0, 1, 2, 3}, {10, 11, 12, 13}, {20, 21, 22, 23}};
  ASSERT_OK_AND_ASSIGN(auto slots, PackSlots(kInterleaved, 16, items, "x"));
  EXPECT_EQ(slots, (std::vector<double>{0, 10, 20, 1, 11, 21, 2, 12, 22, 3, 13, 23}));
  ASSERT_OK_AND_ASSIGN(auto back, UnpackSlots(kInterleaved, slots, 3, "x"));
  EXPECT_EQ(back, items);
}

TEST(SlotLayoutTest, TheLastItemStandsInPlacesThatAreLeft) {
  const Vectors items = {{0, 1, 2, 3}, {10, 11, 12, 13}};
  ASSERT_OK_AND_ASSIGN(auto slots, PackSlots(kInterleaved, 16, items, "x"));
  EXPECT_EQ(slots, (std::vector<double>{0, 10, 10, 1, 11, 11, 2, 12, 12, 3, 13, 13}));
  ASSERT_OK_AND_ASSIGN(auto back, UnpackSlots(kInterleaved, slots, 2, "x"));
  EXPECT_EQ(back, items);
}

TEST(SlotLayoutTest, WrongItemsAreNamedByPath) {
  EXPECT_THAT(
      PackSlots(kInterleaved, 16, {}, "x"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("x: expected 1 to 3 items, got 0")));
  EXPECT_THAT(PackSlots(kInterleaved, 16, Vectors(4, std::vector<double>(4)), "x"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("got 4")));
  EXPECT_THAT(
      PackSlots(kInterleaved, 16, {{1, 2, 3, 4}, {1, 2, 3}}, "x"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("x[1]: expected 4 elements, got 3")));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(PackSlots(kInterleaved, 16, {{1, 2, nan, 4}}, "x"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("x[0][2]")));
}

TEST(SlotLayoutTest, LayoutsOutsideTheSlotsAreRefused) {
  EXPECT_THAT(PackSlots(kInterleaved, 11, {{1, 2, 3, 4}}, "x"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("spans 12 slots")));
  EXPECT_THAT(UnpackSlots(kInterleaved, std::vector<double>(11), 1, "x"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("spans 12 slots")));
  EXPECT_THAT(UnpackSlots(kInterleaved, std::vector<double>(16), 4, "x"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("at most 3 items")));
  programs::SlotLayout huge = kInterleaved;
  huge.element_stride = int64_t{1} << 62;
  EXPECT_THAT(PackSlots(huge, 16, {{1, 2, 3, 4}}, "x"),
              StatusIs(absl::StatusCode::kInvalidArgument));
  huge.element_stride = -1;
  EXPECT_THAT(PackSlots(huge, 16, {{1, 2, 3, 4}}, "x"),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace cipherd::client
