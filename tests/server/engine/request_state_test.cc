#include "server/engine/request_state.h"

#include <set>
#include <utility>

#include "gtest/gtest.h"

namespace cipherd::engine {
namespace {

using enum RequestState;

constexpr RequestState kAllStates[] = {kReceiving, kQueued, kExecuting, kReplying,
                                       kSucceeded, kFailed, kCancelled, kRejected};
static_assert(std::size(kAllStates) == kRequestStateCount);

TEST(RequestStateTest, ExactlyTheTransitionsOfTheTableAreLegal) {
  const std::set<std::pair<RequestState, RequestState>> legal = {
      {kReceiving, kQueued},   {kQueued, kExecuting},    {kExecuting, kReplying},
      {kReplying, kSucceeded}, {kReceiving, kFailed},    {kQueued, kFailed},
      {kExecuting, kFailed},   {kReplying, kFailed},     {kReceiving, kCancelled},
      {kQueued, kCancelled},   {kExecuting, kCancelled}, {kReplying, kCancelled},
      {kReceiving, kRejected}, {kQueued, kRejected}};
  for (RequestState from : kAllStates) {
    for (RequestState to : kAllStates) {
      EXPECT_EQ(CanAdvance(from, to), legal.contains({from, to})) << from << " to " << to;
    }
  }
}

TEST(RequestStateTest, TerminalStatesAreThoseThatNothingLeaves) {
  for (RequestState from : kAllStates) {
    bool leaves = false;
    for (RequestState to : kAllStates) leaves = leaves || CanAdvance(from, to);
    EXPECT_EQ(IsTerminal(from), !leaves) << from;
  }
}

TEST(RequestStateTest, TheStatusChoosesTheTerminalState) {
  EXPECT_EQ(TerminalStateFor(kReplying, absl::OkStatus()), kSucceeded);
  for (RequestState from : {kReceiving, kQueued, kExecuting, kReplying}) {
    EXPECT_EQ(TerminalStateFor(from, absl::CancelledError()), kCancelled) << from;
    EXPECT_EQ(TerminalStateFor(from, absl::DeadlineExceededError("")), kFailed) << from;
    const RequestState refused = TerminalStateFor(from, absl::UnavailableError(""));
    EXPECT_EQ(refused, from == kReceiving || from == kQueued ? kRejected : kFailed) << from;
    EXPECT_TRUE(CanAdvance(from, refused)) << from;
  }
}

}  // namespace
}  // namespace cipherd::engine
