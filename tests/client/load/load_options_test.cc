#include "client/load/load_options.h"

#include "tests/testing/status_matchers.h"

namespace cipherd::client {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(LevelRangeTest, HasBothEnds) {
  EXPECT_THAT(LevelRange::Parse("4")->Levels(), ElementsAre(4));
  EXPECT_THAT(LevelRange::Parse("1:3")->Levels(), ElementsAre(1, 2, 3));
  EXPECT_THAT(LevelRange::Parse("1:8:3")->Levels(), ElementsAre(1, 4, 7));
  // 0.1 is no binary fraction: the last level must not be lost to rounding.
  EXPECT_EQ(LevelRange::Parse("0.1:0.8:0.1")->Levels().size(), 8u);
}

TEST(LevelRangeTest, WhatIsNoRangeIsRefused) {
  for (const char* text : {"", "a", "1:", "0", "-1:2", "3:1", "1:2:0", "1:2:-1", "1:2:3:4", "nan",
                           "1:inf", "1:1000000:1"}) {
    EXPECT_THAT(LevelRange::Parse(text), StatusIs(absl::StatusCode::kInvalidArgument)) << text;
  }
}

TEST(LoadOptionsTest, ErrorsNameTheFlag) {
  LoadOptions options;
  EXPECT_OK(options.Validate());
  options.levels = {.start = 1.5, .end = 1.5};
  EXPECT_THAT(options.Validate(), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("--concurrency-range: expected whole")));
  options.mode = LoadMode::kRequestRate;
  EXPECT_OK(options.Validate());
  options.cancel_share = 1.5;
  EXPECT_THAT(options.Validate(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--cancel-share")));
  options.cancel_share = 1;
  options.percentile = 100;
  EXPECT_THAT(options.Validate(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--percentile")));
}

}  // namespace
}  // namespace cipherd::client
