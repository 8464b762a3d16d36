#include "client/request_split.h"

#include "core/ckks/context.h"
#include "proto/codec/error_detail.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::client {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;

// Slots: 16. One output of `output_item_count` items.
ProgramDescription ProgramOf(const std::vector<std::pair<std::string, int64_t>>& inputs,
                             int64_t output_item_count) {
  constexpr auto kInsecure = ckks::SecurityPolicy::kAllowInsecure;
  ProgramDescription program;
  program.name = "p";
  program.context = *ckks::Context::Create(
      *ckks::MakeContextParameters({.log_n = 5, .max_depth = 1, .p_prime_count = 2}, kInsecure),
      kInsecure);
  for (const auto& [name, item_count] : inputs) {
    program.inputs.push_back({.name = name, .layout = {.item_count = item_count}});
  }
  program.outputs = {{.name = "y", .layout = {.item_count = output_item_count}}};
  return program;
}

TEST(RequestSplitTest, TheLastRequestHasWhatIsLeft) {
  ASSERT_OK_AND_ASSIGN(const RequestSplit split,
                       SplitIntoRequests(ProgramOf({{"a", 8}}, 8), {{"a", 20}}));
  EXPECT_EQ(split.request_count(), 3);
  EXPECT_EQ(split.Begin(2), 16);
  EXPECT_EQ(split.End(1), 16);
  EXPECT_EQ(split.End(2), 20);
}

TEST(RequestSplitTest, WholeRequestsAreNotFollowedByAnEmptyOne) {
  ASSERT_OK_AND_ASSIGN(const RequestSplit split,
                       SplitIntoRequests(ProgramOf({{"a", 8}}, 8), {{"a", 16}}));
  EXPECT_EQ(split.request_count(), 2);
}

TEST(RequestSplitTest, TheInputWithTheFewestPlacesDecides) {
  ASSERT_OK_AND_ASSIGN(const RequestSplit split,
                       SplitIntoRequests(ProgramOf({{"a", 8}, {"b", 4}}, 8), {{"a", 9}, {"b", 9}}));
  EXPECT_EQ(split.items_per_request, 4);
  EXPECT_EQ(split.request_count(), 3);
}

TEST(RequestSplitTest, AnInputOfOnePlaceGoesWithEveryRequest) {
  const ProgramDescription program = ProgramOf({{"query", 1}, {"rows", 8}}, 8);
  ASSERT_OK_AND_ASSIGN(const RequestSplit split,
                       SplitIntoRequests(program, {{"query", 1}, {"rows", 20}}));
  EXPECT_EQ(split.request_count(), 3);
  EXPECT_EQ(ItemsPerRequest(program), 8);
  EXPECT_TRUE(GoesWithEveryRequest(program, program.inputs[0]));
  EXPECT_FALSE(GoesWithEveryRequest(program, program.inputs[1]));
  EXPECT_THAT(SplitIntoRequests(program, {{"query", 2}, {"rows", 20}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("inputs['query']")));
}

TEST(RequestSplitTest, AnInputOfOnePlaceAloneIsSplit) {
  const ProgramDescription program = ProgramOf({{"a", 1}}, 1);
  EXPECT_FALSE(GoesWithEveryRequest(program, program.inputs[0]));
  ASSERT_OK_AND_ASSIGN(const RequestSplit split, SplitIntoRequests(program, {{"a", 3}}));
  EXPECT_EQ(split.request_count(), 3);
}

TEST(RequestSplitTest, RefusalsNameTheInput) {
  const ProgramDescription program = ProgramOf({{"a", 8}, {"b", 8}}, 8);
  struct Case {
    std::map<std::string, int64_t> item_counts;
    const char* path;
    const char* message;
  };
  const Case cases[] = {
      {{{"a", 3}}, "inputs['b']", "missing"},
      {{{"a", 3}, {"b", 3}, {"c", 3}}, "inputs['c']", "no such input"},
      {{{"a", 0}, {"b", 3}}, "inputs['a']", "at least one item"},
      {{{"a", 3}, {"b", 4}}, "inputs['b']", "expected 3 items, as inputs['a'] has, got 4"},
  };
  for (const Case& wrong : cases) {
    const absl::Status status = SplitIntoRequests(program, wrong.item_counts).status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(wrong.message)));
    ASSERT_TRUE(codec::GetErrorDetail(status).has_value());
    EXPECT_EQ(codec::GetErrorDetail(status)->path(), wrong.path);
  }
}

// Such an output sums over its items, say: the sums of three requests are not the sum of all.
TEST(RequestSplitTest, AnOutputOfFewerItemsIsNotPutTogetherFromSeveralRequests) {
  const ProgramDescription program = ProgramOf({{"a", 8}}, 1);
  EXPECT_OK(SplitIntoRequests(program, {{"a", 8}}).status());
  EXPECT_THAT(SplitIntoRequests(program, {{"a", 9}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("at most 8 items at once")));
}

TEST(RequestSplitTest, LayoutsOutsideTheSlotsAreRefused) {
  EXPECT_THAT(SplitIntoRequests(ProgramOf({{"a", 8}}, int64_t{1} << 31), {{"a", 1}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("outputs['y']")));
  EXPECT_THAT(SplitIntoRequests(ProgramOf({{"a", 0}}, 8), {{"a", 1}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("inputs['a']")));
}

}  // namespace
}  // namespace cipherd::client
