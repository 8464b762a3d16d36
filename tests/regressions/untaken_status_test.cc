// Two faults of calls whose time was over.
//
// One had been ended for a stall, and its client half-closed then: nobody waited for the client to
// take the status any more, and the call kept its place for as long as the client liked.
//
// The other's peer moved just after the watch had found it late, and before the watch had told: a
// lookup could be ended twice, by the watch and by its answer.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <memory>
#include <string>
#include <thread>

#include "absl/functional/function_ref.h"
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

  // The peer moves while `meanwhile` runs, under the call's lock.
  void MoveWhile(absl::FunctionRef<void()> meanwhile) {
    absl::MutexLock lock(&mu_);
    meanwhile();
    Rest();
  }
  bool is_finished() {
    absl::MutexLock lock(&mu_);
    return is_finished_;
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

// A server with one call, which is silent.
class SilentServer {
 public:
  SilentServer(engine::Engine& engine, const ProgramRegistry& programs)
      : environment_({.engine = engine,
                      .programs = programs,
                      .metrics = metrics_,
                      .calls = calls_,
                      .lookups = calls_,
                      .stalls = stalls_,
                      .uploads = uploads_,
                      .callers = callers_,
                      .limits = limits_}),
        service_(environment_) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    builder.RegisterCallbackGenericService(&service_);
    server_ = builder.BuildAndStart();
    stub_ = v1::EvaluationService::NewStub(grpc::CreateChannel("127.0.0.1:" + std::to_string(port),
                                                               grpc::InsecureChannelCredentials()));
    context_.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    stream_ = stub_->EvaluateStream(&context_);
  }
  ~SilentServer() { server_->Shutdown(); }

  SilentCall& call() { return service_.call(); }
  base::FakeClock& clock() { return clock_; }
  StallWatch& stalls() { return stalls_; }
  // What the client is told; waits for it.
  grpc::Status Finish() { return stream_->Finish(); }

 private:
  base::FakeClock clock_;
  Metrics metrics_;
  CallGate calls_{{.max_calls = 1}};
  StallWatch stalls_{absl::Minutes(1), clock_};
  UploadTable uploads_{absl::Minutes(1), clock_};
  const Callers callers_;
  const codec::WireLimits limits_;
  const ServiceEnvironment environment_;
  SilentService service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::EvaluationService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::EvaluateStreamRequest, v1::EvaluateStreamResponse>>
      stream_;
};

class UntakenStatusTest : public ServiceTest {};

TEST_F(UntakenStatusTest, AHalfCloseAfterAStallDoesNotHoldTheCall) {
  SilentServer silent(server_->engine(), server_->programs());
  SilentCall& call = silent.call();
  silent.clock().Advance(absl::Minutes(2));
  silent.stalls().Check();
  call.OnReadDone(/*ok=*/false);
  silent.clock().Advance(absl::Minutes(2));
  silent.stalls().Check();
  EXPECT_NE(silent.Finish().error_code(), grpc::StatusCode::DEADLINE_EXCEEDED)
      << "the client ended the call, not the watch";
}

// Whether the thread waits for something.
bool IsAsleep(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  std::string text;
  std::getline(file, text);
  const size_t name_end = text.rfind(')');
  return name_end != std::string::npos && text[name_end + 2] == 'S';
}

TEST_F(UntakenStatusTest, AWatchThatTellsLateDoesNotEndACallWhosePeerHasMoved) {
  SilentServer silent(server_->engine(), server_->programs());
  SilentCall& call = silent.call();
  std::thread watch;
  call.MoveWhile([&] {
    silent.clock().Advance(absl::Minutes(2));
    std::atomic<pid_t> thread = 0;
    watch = std::thread([&, stalls = &silent.stalls()] {
      thread = gettid();
      stalls->Check();
    });
    // It has found the call late, and waits for the call's lock.
    while (thread == 0 || !IsAsleep(thread)) std::this_thread::yield();
  });
  watch.join();
  EXPECT_FALSE(call.is_finished());
  // Whoever has moved is waited for again.
  call.OnReadDone(/*ok=*/true);
  silent.clock().Advance(absl::Minutes(2));
  silent.stalls().Check();
  EXPECT_TRUE(call.is_finished());
  silent.clock().Advance(absl::Minutes(2));
  silent.stalls().Check();
  EXPECT_FALSE(silent.Finish().ok());
}

}  // namespace
}  // namespace cipherd::server
