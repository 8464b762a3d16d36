#include "proto/codec/serving_codec.h"

#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::codec {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;

TEST(ServingCodecTest, EveryFieldIsReadAndWhatIsAbsentStaysOpen) {
  const programs::ServingSpec expected = {.instances = 2,
                                          .batch_sizes = {1, 4},
                                          .max_batch_delay_seconds = 0.25,
                                          .queue_capacity = 5,
                                          .priority = -1,
                                          .default_timeout_seconds = 10,
                                          .longest_timeout_seconds = 20,
                                          .warmup = 0,
                                          .constant_memory_bytes = 4096};
  EXPECT_EQ(*ParseServingText("instances: 2 batch_sizes: [1, 4] max_batch_delay_seconds: 0.25 "
                              "queue_capacity: 5 priority: -1 default_timeout_seconds: 10 "
                              "longest_timeout_seconds: 20 warmup: 0 constant_memory_bytes: 4096",
                              "f"),
            expected);
  EXPECT_EQ(*ParseServingText("", "f"), programs::ServingSpec{});
}

TEST(ServingCodecTest, ErrorsSayWhere) {
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(ParseServingText("instances: 1\nbatch: 2\n", "dir/f"),
              StatusIs(kInvalid, HasSubstr("dir/f:2:")));
  EXPECT_THAT(ParseServingText("instances: 3000000000", "f"),
              StatusIs(kInvalid, HasSubstr("f.instances")));
  EXPECT_THAT(ParseServingText("instances: -1", "f"), StatusIs(kInvalid));
  EXPECT_THAT(ParseServingText("constant_memory_bytes: 9223372036854775808", "f"),
              StatusIs(kInvalid, HasSubstr("f.constant_memory_bytes")));
}

}  // namespace
}  // namespace cipherd::codec
