// Server reflection, asked in its own wire format, since no stub of it comes with the library.
#include <chrono>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "gtest/gtest.h"
#include "tests/server/service_fixture.h"

namespace cipherd::server {
namespace {

using ::testing::HasSubstr;
using namespace server::testing;  // NOLINT: the test's own vocabulary

using ReflectionTest = ServiceTest;

void Await(grpc::CompletionQueue& queue) {
  void* tag = nullptr;
  bool ok = false;
  ASSERT_TRUE(queue.Next(&tag, &ok));
}

TEST_F(ReflectionTest, EveryServiceIsListed) {
  grpc::GenericStub stub(NewChannel());
  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  const auto call = stub.PrepareCall(
      &context, "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
  call->StartCall(nullptr);
  Await(queue);
  // Field 7, list_services, an empty string.
  const grpc::Slice request(std::string("\x3a\x00", 2));
  call->Write(grpc::ByteBuffer(&request, 1), nullptr);
  Await(queue);
  grpc::ByteBuffer response;
  call->Read(&response, nullptr);
  Await(queue);
  std::vector<grpc::Slice> slices;
  ASSERT_TRUE(response.Dump(&slices).ok());
  std::string text;
  for (const grpc::Slice& slice : slices) {
    text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  EXPECT_THAT(text, HasSubstr("cipherd.v1.EvaluationService"));
  EXPECT_THAT(text, HasSubstr("grpc.health.v1.Health"));
  EXPECT_THAT(text, HasSubstr("inference.GRPCInferenceService"));
  call->WritesDone(nullptr);
  Await(queue);
  grpc::Status status;
  call->Finish(&status, nullptr);
  Await(queue);
  EXPECT_TRUE(status.ok());
}

// Each has a thread as long as its peer wants.
void ExpectFewThreads(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::GenericStub stub(channel);
  grpc::CompletionQueue queue;
  constexpr int kCalls = 64;
  grpc::ClientContext contexts[kCalls];
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> calls[kCalls];
  for (int i = 0; i < kCalls; ++i) {
    // Where none is refused, none ends by itself.
    contexts[i].set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    calls[i] = stub.PrepareCall(
        &contexts[i], "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
    calls[i]->StartCall(nullptr);
    Await(queue);
  }
  // Those that find no thread end; the others wait for their peer.
  grpc::Status statuses[kCalls];
  for (int i = 0; i < kCalls; ++i) calls[i]->Finish(&statuses[i], nullptr);
  for (int i = 0; i < kCalls - 16; ++i) Await(queue);
  for (grpc::ClientContext& context : contexts) context.TryCancel();
  for (int i = kCalls - 16; i < kCalls; ++i) Await(queue);
  int refused = 0;
  for (const grpc::Status& status : statuses) {
    refused += status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED;
  }
  EXPECT_GE(refused, kCalls - 16);
}

TEST_F(ReflectionTest, ManyCallsDoNotTakeManyThreads) { ExpectFewThreads(NewChannel()); }

// gRPC adds reflection to every server of the process.
class HealthPortReflectionTest : public ServiceTest {
 protected:
  void SetUp() override {
    ServerOptions options = TestOptions(directory_.path());
    options.health_address = "127.0.0.1:0";
    Start(options);
  }
};

TEST_F(HealthPortReflectionTest, ManyCallsDoNotTakeManyThreadsThere) {
  ExpectFewThreads(grpc::CreateChannel("127.0.0.1:" + std::to_string(server_->health_port()),
                                       grpc::InsecureChannelCredentials()));
}

}  // namespace
}  // namespace cipherd::server
