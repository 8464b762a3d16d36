// The strides of a shape without elements were multiplied out all the same, and overflowed.
#include <cstdint>

#include "core/value/tensor.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::value {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kHuge = int64_t{1} << 62;

TEST(ContiguousStridesTest, ShapesWithoutElementsDoNotOverflow) {
  EXPECT_THAT(ContiguousStrides({0, kHuge, kHuge}), ElementsAre(INT64_MAX, kHuge, 1));
  EXPECT_THAT(ContiguousStrides({kHuge, kHuge, kHuge, 0}), ElementsAre(INT64_MAX, kHuge, 1, 1));
  ASSERT_OK_AND_ASSIGN(const Tensor tensor,
                       Tensor::AllocateHost(DType::kUint64, {0, kHuge, kHuge}));
  EXPECT_TRUE(tensor.is_contiguous());
  EXPECT_EQ(tensor.bytes(), 0);
}

}  // namespace
}  // namespace cipherd::value
