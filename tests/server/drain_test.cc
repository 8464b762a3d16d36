// Shutting down under load.
#include <atomic>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "proto/grpc_status/grpc_status.h"
#include "tests/server/service_fixture.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server {
namespace {

using namespace server::testing;  // NOLINT: the test's own vocabulary

class DrainTest : public ServiceTest {
 protected:
  // A request is in flight from its header on, but a drain turns it away until it is admitted.
  void AwaitAdmission() {
    const auto served = server_->engine().FindProgram("square_sum").value();
    while (served->trees().leased_count() == 0) std::this_thread::yield();
  }
};

TEST_F(DrainTest, EveryAdmittedRequestCompletesAndLaterOnesAreTurnedAway) {
  constexpr int kClients = 3;
  std::atomic<int> succeeded = 0, turned_away = 0;
  const WireRequest request =
      MakeWireRequest("square_sum", alice_keys(), alice().Encrypt(TestSlots(1, 128)));
  v1::EvaluateResponse reference;
  ASSERT_OK(FromGrpcStatus(EvaluateUnary(request, &reference)));
  std::vector<std::thread> clients;
  for (int c = 0; c < kClients; ++c) {
    clients.emplace_back([&] {
      while (true) {
        v1::EvaluateResponse response;
        const grpc::Status status = EvaluateUnary(request, &response);
        if (status.ok() && response.payload() == reference.payload()) {
          ++succeeded;
        } else if (status.error_code() == grpc::StatusCode::UNAVAILABLE ||
                   status.error_code() == grpc::StatusCode::CANCELLED) {
          // The latter where gRPC had stopped listening before the call reached the service.
          ++turned_away;
          return;
        } else {
          ADD_FAILURE() << status.error_code() << ": " << status.error_message();
          return;
        }
      }
    });
  }
  while (succeeded < 2 * kClients) std::this_thread::yield();
  EXPECT_OK(server_->Shutdown());
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(turned_away, kClients);
  const engine::RequestLedger::Counts counts =
      server_->engine().ledger().Snapshot().at("square_sum");
  EXPECT_EQ(counts.FinishedIn(engine::RequestState::kFailed), 0u);
  EXPECT_EQ(counts.FinishedIn(engine::RequestState::kCancelled), 0u);
  EXPECT_EQ(counts.FinishedIn(engine::RequestState::kSucceeded),
            static_cast<uint64_t>(succeeded + 1));
}

TEST_F(DrainTest, ALameDuckServesOldClientsAndNewOnes) {
  server_->BeginLameDuck();
  ExpectGoodRequestSucceeds();
  Connect();
  ExpectGoodRequestSucceeds();
  EXPECT_OK(server_->Shutdown());
}

TEST_F(DrainTest, AnUploadThatWasAdmittedBeforeCompletes) {
  const WireRequest request =
      MakeWireRequest("square_sum", alice_keys(), alice().Encrypt(TestSlots(1, 128)));
  grpc::ClientContext context;
  const auto stream = stub_->EvaluateStream(&context);
  v1::EvaluateStreamRequest message;
  *message.mutable_header() = request.header;
  ASSERT_TRUE(stream->Write(message));
  AwaitAdmission();
  std::thread shutdown([&] { EXPECT_OK(server_->Shutdown()); });
  while (!server_->engine().is_draining()) std::this_thread::yield();
  message.set_chunk(request.payload);
  EXPECT_TRUE(stream->Write(message));
  EXPECT_TRUE(stream->WritesDone());
  v1::EvaluateStreamResponse response;
  while (stream->Read(&response)) {
  }
  EXPECT_OK(FromGrpcStatus(stream->Finish()));
  shutdown.join();
}

TEST_F(DrainTest, AStalledUploadDoesNotHoldTheDaemonForEver) {
  ServerOptions options = TestOptions(directory_.path());
  options.shutdown.drain_timeout = absl::Milliseconds(50);
  ASSERT_OK(server_->Shutdown());
  server_.reset();
  Start(options);
  grpc::ClientContext context;
  const auto stream = stub_->EvaluateStream(&context);
  v1::EvaluateStreamRequest message;
  *message.mutable_header() =
      MakeWireRequest("square_sum", alice_keys(), alice().Encrypt(TestSlots(1, 128))).header;
  ASSERT_TRUE(stream->Write(message));
  AwaitAdmission();
  EXPECT_EQ(server_->Shutdown().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_FALSE(stream->Finish().ok());
  EXPECT_EQ(server_->engine().ledger().in_flight(), 0u);
}

TEST_F(DrainTest, APortThatIsTakenIsAnError) {
  ServerOptions options = TestOptions(directory_.path());
  options.listen.address = address();
  EXPECT_THAT(Server::Start(options, base::Clock::Real()),
              cipherd::testing::StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace cipherd::server
