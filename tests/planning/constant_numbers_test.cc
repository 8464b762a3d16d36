#include "core/planning/constant_numbers.h"

#include <cstdint>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::planning {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ConstantNumbersTest, Float64IsReadWhereItStands) {
  ASSERT_OK_AND_ASSIGN(const value::Tensor tensor,
                       value::Tensor::AllocateHost(value::DType::kFloat64, {2}));
  tensor.data_as<double>()[0] = 1.5;
  tensor.data_as<double>()[1] = -2;
  const ConstantNumbers numbers(tensor);
  EXPECT_THAT(numbers.span(), ElementsAre(1.5, -2));
  EXPECT_EQ(numbers.span().data(), tensor.data_as<const double>());
}

TEST(ConstantNumbersTest, Float32IsConverted) {
  programs::Constants constants;
  ASSERT_OK_AND_ASSIGN(constants["w"], value::Tensor::AllocateHost(value::DType::kFloat32, {1, 2}));
  constants["w"].data_as<float>()[0] = 0.5f;
  constants["w"].data_as<float>()[1] = 3;
  EXPECT_THAT(ConstantNumbers(constants, "w").span(), ElementsAre(0.5, 3));
}

TEST(ConstantNumbersTest, NoNameHasNone) {
  EXPECT_THAT(ConstantNumbers(programs::Constants(), "").span(), IsEmpty());
}

}  // namespace
}  // namespace cipherd::planning
