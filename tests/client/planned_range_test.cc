#include "client/planned_range.h"

#include <limits>

#include "proto/codec/error_detail.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::client {
namespace {

using ::cipherd::testing::IsOk;
using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

programs::ProgramInput PairsUpTo(double lower, double upper) {
  return {
      .name = "x", .layout = {.item_count = 8, .element_count = 2}, .lower = lower, .upper = upper};
}

TEST(PlannedRangeTest, NumbersOfTheRangeAndItsEndsAreTaken) {
  const Vectors items = {{-0.5, 1.5}, {0, 1}};
  EXPECT_THAT(CheckInputRange(PairsUpTo(-0.5, 1.5), items, "x"), IsOk());
}

TEST(PlannedRangeTest, TheFirstNumberOutsideIsNamedAndNotShown) {
  const Vectors items = {{0, 0}, {0, 1.75}, {-9, 0}};
  const absl::Status refused = CheckInputRange(PairsUpTo(-0.5, 1.5), items, "inputs['x']");
  EXPECT_THAT(refused,
              StatusIs(absl::StatusCode::kOutOfRange,
                       HasSubstr("inputs['x'][1][1]: expected a number from -0.5 to 1.5")));
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kOutOfRange, Not(HasSubstr("1.75"))));
  EXPECT_EQ(codec::GetErrorDetail(refused)->path(), "inputs['x'][1][1]");
}

TEST(PlannedRangeTest, NumbersThatStandInARowAreNamedByItemAndElement) {
  const std::vector<double> numbers = {0, 0, 0, 0, 0, -0.75};
  EXPECT_THAT(CheckInputRange(PairsUpTo(-0.5, 1.5), numbers, "x"),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("x[2][1]: ")));
}

TEST(PlannedRangeTest, WhatIsNoNumberIsOutside) {
  const Vectors items = {{0, std::numeric_limits<double>::quiet_NaN()}};
  EXPECT_THAT(CheckInputRange(PairsUpTo(-0.5, 1.5), items, "x"),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("x[0][1]")));
}

TEST(PlannedRangeTest, AProgramThatStatesNoRangeTakesAll) {
  EXPECT_THAT(CheckInputRange(PairsUpTo(0, 0), Vectors{{-1e300, 1e300}}, "x"), IsOk());
  EXPECT_THAT(CheckOutputRange({.name = "y"}, {{-1e300, kInfinity}}, "y", 0), IsOk());
}

TEST(PlannedRangeTest, ResultsAreTakenUpToFourTimesTheBound) {
  const programs::ProgramOutput output = {.name = "y", .magnitude_bound = 8};
  EXPECT_THAT(CheckOutputRange(output, {{32, -32}}, "y", 0), IsOk());
  EXPECT_THAT(
      CheckOutputRange(output, {{0, 0}, {0, -32.5}}, "outputs['y']", 1000),
      StatusIs(absl::StatusCode::kOutOfRange,
               HasSubstr("outputs['y'][1001][1]: expected a magnitude of at most 32, 4 times")));
  EXPECT_THAT(CheckOutputRange(output, {{kInfinity}}, "y", 0),
              StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("y[0][0]")));
}

}  // namespace
}  // namespace cipherd::client
