// What SIGTERM and SIGHUP do to a daemon.
#include <signal.h>

#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "cipherd/v1/evaluation.grpc.pb.h"
#include "client/session.h"
#include "core/base/status_macros.h"
#include "core/secret/random.h"
#include "grpcpp/create_channel.h"
#include "health.grpc.pb.h"
#include "proto/codec/context_codec.h"
#include "proto/codec/tree_encoder.h"
#include "tests/integration/daemon_fixture.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::testing {
namespace {

using client::Client;
using client::NamedVectors;
using client::Session;
using client::Vectors;
using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

const Vectors kInput(2, std::vector<double>(256, 0.5));

class SignalsTest : public DaemonTest {
 protected:
  std::shared_ptr<grpc::Channel> NewChannel() const {
    return grpc::CreateChannel(address(), grpc::InsecureChannelCredentials());
  }

  // Starts to watch the health of a program, or of the daemon, which is good.
  void WatchHealth(const std::string& service = "") {
    health_ = Health::NewStub(NewChannel());
    HealthCheckRequest request;
    request.set_service(service);
    watch_ = health_->Watch(&watch_context_, request);
    HealthCheckResponse::ServingStatus status = NextHealth();
    // The daemon is good a moment later than its last program.
    if (status == HealthCheckResponse::NOT_SERVING) status = NextHealth();
    ASSERT_EQ(status, HealthCheckResponse::SERVING);
  }
  // Blocks until it changes; UNKNOWN at the end.
  HealthCheckResponse::ServingStatus NextHealth() {
    HealthCheckResponse response;
    return watch_->Read(&response) ? response.status() : HealthCheckResponse::UNKNOWN;
  }

  absl::StatusOr<std::unique_ptr<Session>> StartSession(Client& client) {
    CIPHERD_ASSIGN_OR_RETURN(std::unique_ptr<Session> session,
                             Session::Create(client, kSmallProgram));
    CIPHERD_RETURN_IF_ERROR(session->UploadKeys());
    return session;
  }

  // An evaluation whose client does not send more than the header.
  struct StalledEvaluation {
    std::unique_ptr<v1::EvaluationService::Stub> stub;
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReaderWriter<v1::EvaluateStreamRequest, v1::EvaluateStreamResponse>>
        stream;
  };
  // Returns once it is admitted.
  void Begin(const Session& session, StalledEvaluation& evaluation) {
    secret::Random random = secret::Random::FromSeedForTesting(1);
    ASSERT_OK_AND_ASSIGN(const value::ValueTree inputs,
                         session.cipher().EncryptInputs({{"x", kInput}}, random));
    v1::EvaluateStreamRequest message;
    v1::EvaluationHeader& header = *message.mutable_header();
    header.set_program(kSmallProgram);
    header.set_key_set_id(codec::EncodeDigest(session.key_set_id(), "key_set_id").value());
    ASSERT_OK(codec::EncodeTree(inputs, "inputs", header.mutable_inputs()));
    evaluation.stub = v1::EvaluationService::NewStub(NewChannel());
    evaluation.stream = evaluation.stub->EvaluateStream(&evaluation.context);
    ASSERT_TRUE(evaluation.stream->Write(message));
    while (Metrics()->Sum("cipherd_pinned_trees", {{"state", "leased"}}) == 0) {
      std::this_thread::yield();
    }
  }

  grpc::ClientContext watch_context_;
  std::unique_ptr<Health::Stub> health_;
  std::unique_ptr<grpc::ClientReader<HealthCheckResponse>> watch_;
};

TEST_F(SignalsTest, SigtermLetsEveryoneLeaveFirstAndAnotherEndsTheDelay) {
  ASSERT_OK(StartDaemon(SmallPrograms(), kSmallProgram, {"--lame-duck", "3600"}));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Client> client, Connect());
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, StartSession(*client));
  WatchHealth();

  daemon_->Signal(SIGTERM);
  EXPECT_EQ(NextHealth(), HealthCheckResponse::NOT_SERVING);
  EXPECT_OK(session->Evaluate({{"x", kInput}}));
  // Who has not heard yet may even come anew.
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Client> late_client, Connect());
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> late_session, StartSession(*late_client));
  EXPECT_OK(late_session->Evaluate({{"x", kInput}}));
  // This one is for what serves, and nothing to someone who leaves.
  daemon_->Signal(SIGHUP);
  EXPECT_OK(session->Evaluate({{"x", kInput}}));

  daemon_->Signal(SIGTERM);
  EXPECT_EQ(daemon_->Wait(), 0);
  daemon_.reset();
  EXPECT_EQ(NextHealth(), HealthCheckResponse::UNKNOWN);
}

TEST_F(SignalsTest, OneMoreSigtermDoesNotWaitForTheDrain) {
  ASSERT_OK(StartDaemon(SmallPrograms(), kSmallProgram,
                        {"--drain-timeout", "3600", "--stall-timeout", "3600"}));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Client> client, Connect());
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, StartSession(*client));
  WatchHealth();

  StalledEvaluation evaluation;
  ASSERT_NO_FATAL_FAILURE(Begin(*session, evaluation));

  daemon_->Signal(SIGTERM);
  EXPECT_EQ(NextHealth(), HealthCheckResponse::NOT_SERVING);
  daemon_->Signal(SIGTERM);
  EXPECT_EQ(daemon_->Wait(), 128 + SIGTERM);
  daemon_.reset();
  EXPECT_FALSE(evaluation.stream->Finish().ok());
}

TEST_F(SignalsTest, ALookAtTheProgramsDoesNotHoldUpTheSignalToLeave) {
  const std::string programs =
      WritePrograms({SquareAndTurn(kSmallProgram, 10), SquareAndTurn("other", 10)});
  ASSERT_OK(StartDaemon(programs, "", {"--drain-timeout", "3600", "--stall-timeout", "3600"}));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Client> client, Connect());
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, StartSession(*client));
  WatchHealth("other");

  // A program is not gone before the last of its requests, and this one stays.
  StalledEvaluation evaluation;
  ASSERT_NO_FATAL_FAILURE(Begin(*session, evaluation));
  std::filesystem::remove_all(programs + "/" + kSmallProgram);
  daemon_->Signal(SIGHUP);
  while (Metrics()->Sum("cipherd_program_ready", {{"program", kSmallProgram}}) == 1) {
    std::this_thread::yield();
  }

  daemon_->Signal(SIGTERM);
  EXPECT_EQ(NextHealth(), HealthCheckResponse::NOT_SERVING);
  evaluation.context.TryCancel();
  EXPECT_FALSE(evaluation.stream->Finish().ok());
  EXPECT_EQ(daemon_->Wait(), 0);
  daemon_.reset();
}

}  // namespace
}  // namespace cipherd::testing
