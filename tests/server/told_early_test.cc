// Calls of one message whose message does not come: they are known, bounded, and end.
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "proto/codec/error_detail.h"
#include "proto/grpc_status/grpc_status.h"
#include "tests/server/raw_call.h"
#include "tests/server/service_fixture.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;
using namespace server::testing;  // NOLINT: the test's own vocabulary

const std::string kService = "/cipherd.v1.EvaluationService/";
const std::string kInference = "/inference.GRPCInferenceService/";
const std::string kHealth = "/grpc.health.v1.Health/";

std::vector<std::string> Methods() {
  std::vector<std::string> methods = {kHealth + "Check", kHealth + "Watch"};
  for (const char* name :
       {"GetServerInfo", "ListPrograms", "GetProgram", "GetKeyUpload", "DropKeys", "Evaluate"}) {
    methods.push_back(kService + name);
  }
  for (const char* name : {"ServerLive", "ServerReady", "ModelReady", "ServerMetadata",
                           "ModelMetadata", "ModelInfer"}) {
    methods.push_back(kInference + name);
  }
  return methods;
}

class ToldEarlyTest : public ServiceTest {
 protected:
  void SetUp() override {}
};

TEST_F(ToldEarlyTest, ACallOfAnyMethodEndsWhoseMessageDoesNotCome) {
  ServerOptions options = TestOptions(directory_.path());
  options.transport.stall_timeout = absl::Milliseconds(300);
  Start(options);
  for (const std::string& method : Methods()) {
    const absl::Status status = FromGrpcStatus(RawCall(NewChannel(), method).AwaitStatus());
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("waited")))
        << method;
  }
}

TEST_F(ToldEarlyTest, OneWithoutAMessageOrWithTwoIsRefused) {
  Start(TestOptions(directory_.path()));
  for (const std::string& method : Methods()) {
    if (method == kHealth + "Watch") continue;
    RawCall none(NewChannel(), method);
    EXPECT_THAT(FromGrpcStatus(none.Finish()),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("got none")))
        << method;
    // The second may find the call over, where the first was no good already.
    RawCall two(NewChannel(), method);
    two.Write("");
    two.Write("");
    EXPECT_NE(two.Finish().error_code(), grpc::StatusCode::OK) << method;
  }
}

// A connection of its own, since one has room for fewer calls.
std::shared_ptr<grpc::Channel> OwnConnection(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
}

TEST_F(ToldEarlyTest, CallsThatOnlyAskHavePlacesOfTheirOwnAndNoCallerHasAll) {
  Start(TestOptions(directory_.path()));
  const auto lookups_under_way = [&](int count) {
    return server_->metrics().Text().find(absl::StrCat("cipherd_calls_in_flight{kind=\"lookup\"} ",
                                                       count, "\n")) != std::string::npos;
  };
  const std::string method = kService + "GetServerInfo";
  constexpr int kOfOneCaller = 512;
  std::list<RawCall> calls;
  std::shared_ptr<grpc::Channel> channel;
  for (int i = 0; i < kOfOneCaller; ++i) {
    if (i % 128 == 0) channel = OwnConnection(address());
    calls.emplace_back(channel, method);
  }
  while (!lookups_under_way(kOfOneCaller)) std::this_thread::yield();
  EXPECT_THAT(FromGrpcStatus(RawCall(OwnConnection(address()), method).AwaitStatus()),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("the caller has 512")));
  EXPECT_TRUE(lookups_under_way(kOfOneCaller));
  v1::EvaluateResponse response;
  EXPECT_TRUE(
      EvaluateUnary(MakeWireRequest("square_sum", alice_keys(), alice().Encrypt(TestSlots(1, 128))),
                    &response)
          .ok())
      << "that is work, not a question";
  RawCall check(OwnConnection(address()), kHealth + "Check");
  EXPECT_TRUE(check.Write(""));
  EXPECT_OK(FromGrpcStatus(check.Finish()));
  calls.clear();
  while (!lookups_under_way(0)) std::this_thread::yield();
}

}  // namespace
}  // namespace cipherd::server
