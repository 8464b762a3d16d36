// A call that had been ended for a stall, and whose client half-closed then: nobody waited for the
// client to take the status any more, and the call kept its place for as long as the client liked.
#include <chrono>
#include <memory>
#include <string>

#include "absl/synchronization/notification.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "gtest/gtest.h"
#include "server/stream_reactor.h"
#include "tests/server/service_fixture.h"

namespace cipherd::server {
namespace {

using namespace server::testing;  // NOLINT: the test's own vocabulary

// gRPC's reactor as the test steps it: the client's messages come when the test says so, and no
// client takes the status.
class PuppetReactor : public grpc::ServerGenericBidiReactor {
 public:
  void StartRead(grpc::ByteBuffer*) {}
  void Finish(const grpc::Status& status) { status_ = status; }
  void OnCancel() override { grpc::ServerGenericBidiReactor::Finish(status_); }

 private:
  grpc::Status status_;
};

class SilentCall final : public StreamReactor<PuppetReactor> {
 public:
  SilentCall(const ServiceEnvironment& environment, grpc::CallbackServerContext& context)
      : StreamReactor("SilentCall", environment, context, environment.calls) {
    Start();
  }

 private:
  absl::Status Receive(grpc::ByteBuffer&) override { return absl::OkStatus(); }
  void OnHalfClose() override {}
  void OnStall() override { FinishWith(Stalled(environment_.stalls, "a message")); }
  void Release(const absl::Status&) override {}
};

class SilentService final : public grpc::CallbackGenericService {
 public:
  explicit SilentService(const ServiceEnvironment& environment) : environment_(environment) {}

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    call_ = new SilentCall(environment_, *context);
    has_call_.Notify();
    return call_;
  }
  // Waits for the call.
  SilentCall& call() {
    has_call_.WaitForNotification();
    return *call_;
  }

 private:
  const ServiceEnvironment& environment_;
  SilentCall* call_ = nullptr;
  absl::Notification has_call_;
};

class UntakenStatusTest : public ServiceTest {};

TEST_F(UntakenStatusTest, AHalfCloseAfterAStallDoesNotHoldTheCall) {
  base::FakeClock clock;
  Metrics metrics;
  CallGate calls({.max_calls = 1});
  StallWatch stalls(absl::Minutes(1), clock);
  UploadTable uploads(absl::Minutes(1), clock);
  const Callers callers;
  const codec::WireLimits limits;
  const ServiceEnvironment environment = {.engine = server_->engine(),
                                          .programs = server_->programs(),
                                          .metrics = metrics,
                                          .calls = calls,
                                          .lookups = calls,
                                          .stalls = stalls,
                                          .uploads = uploads,
                                          .callers = callers,
                                          .limits = limits};
  SilentService service(environment);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterCallbackGenericService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  const auto stub = v1::EvaluationService::NewStub(
      grpc::CreateChannel("127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  const auto stream = stub->EvaluateStream(&context);
  SilentCall& call = service.call();

  clock.Advance(absl::Minutes(2));
  stalls.Check();
  call.OnReadDone(/*ok=*/false);
  clock.Advance(absl::Minutes(2));
  stalls.Check();
  EXPECT_NE(stream->Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED)
      << "the client ended the call, not the watch";
  server->Shutdown();
}

}  // namespace
}  // namespace cipherd::server
