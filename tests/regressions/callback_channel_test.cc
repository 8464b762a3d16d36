// The last channel of a process to go, where it went in a callback, had gRPC's thread for callbacks
// join itself: clients that were dropped as soon as a call had ended aborted now and then.
#include <memory>
#include <utility>

#include "absl/synchronization/notification.h"
#include "cipherd/v1/evaluation.grpc.pb.h"
#include "client/channel.h"
#include "client/client_options.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::client {
namespace {

TEST(CallbackChannelTest, TheLastChannelMayGoInACallback) {
  for (int round = 0; round < 20; ++round) {
    struct Call {
      std::shared_ptr<grpc::Channel> channel;
      std::unique_ptr<grpc::ClientContext> context = std::make_unique<grpc::ClientContext>();
      v1::EvaluateRequest request;
      v1::EvaluateResponse response;
    };
    auto call = std::make_shared<Call>();
    ClientOptions options;
    options.target = "127.0.0.1:1";  // where nobody listens
    ASSERT_OK_AND_ASSIGN(call->channel, MakeChannel(options));
    absl::Notification ended;
    v1::EvaluationService::Stub(call->channel)
        .async()
        ->Evaluate(call->context.get(), &call->request, &call->response,
                   [call, &ended](const grpc::Status& status) {
                     EXPECT_FALSE(status.ok());
                     call->context.reset();
                     call->channel.reset();
                     ended.Notify();
                   });
    call.reset();
    ended.WaitForNotification();
  }
}

}  // namespace
}  // namespace cipherd::client
