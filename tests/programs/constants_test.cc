#include "core/programs/constants.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/programs/spec_builder.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::programs {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::ElementsAre;

TEST(Constants, ExpansionRepeatsNumbersThenTilesOrFillsWithZeros) {
  const value::Tensor constant =
      HostTensor<float>(value::DType::kFloat32, {2, 2}, {1, 2, -3, 0.5f});
  EXPECT_THAT(ExpandRow(constant, 0, {.repeat = 1, .tile = false}, 8),
              ElementsAre(1, 2, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(ExpandRow(constant, 1, {.repeat = 2, .tile = false}, 8),
              ElementsAre(-3, -3, 0.5, 0.5, 0, 0, 0, 0));
  EXPECT_THAT(ExpandRow(constant, 1, {.repeat = 2, .tile = true}, 8),
              ElementsAre(-3, -3, 0.5, 0.5, -3, -3, 0.5, 0.5));
}

TEST(Constants, LengthsWhoseProductWrapsAreRefused) {
  ASSERT_OK_AND_ASSIGN(const int64_t filled, ExpandedLength(5, {.repeat = 2, .tile = false}, 128));
  EXPECT_EQ(filled, 10);
  ASSERT_OK_AND_ASSIGN(const int64_t tiled, ExpandedLength(4, {.repeat = 2, .tile = true}, 128));
  EXPECT_EQ(tiled, 128);
  EXPECT_THAT(ExpandedLength(4, {.repeat = int64_t{1} << 62, .tile = false}, 128),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(ExpandedLength(65, {.repeat = 2, .tile = false}, 128),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace cipherd::programs
