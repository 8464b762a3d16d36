// Client and daemon as two processes.
#include <signal.h>

#include <atomic>
#include <thread>
#include <vector>

#include "client/session.h"
#include "tests/integration/daemon_fixture.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::testing {
namespace {

using client::Client;
using client::NamedVectors;
using client::Session;
using client::Vectors;
using ::testing::HasSubstr;

// Element j of vector k: (j + 256 k) / 512, below 1.
Vectors ExampleVectors() {
  Vectors vectors(2, std::vector<double>(256));
  for (int k = 0; k < 2; ++k) {
    for (int j = 0; j < 256; ++j) vectors[k][j] = (j + 256 * k) / 512.0;
  }
  return vectors;
}

// Slot 2j + k holds element j of vector k, so the turn by one slot takes element j of vector 0 from
// vector 1, and element j of vector 1 from element j + 1 of vector 0.
double Expected(int k, int j) {
  const Vectors x = ExampleVectors();
  const double source = k == 0 ? x[1][j] : x[0][(j + 1) % 256];
  return source * source;
}

// Slots are below 1, scale 2^40, N = 2^10. A fresh error has coefficients of at most 30, so a slot
// at most 30.5 · N / 2^40 (rounding included); the square doubles it; relinearization, rescaling
// and rotation add errors of the size of a rounding, at most (N + 1)/2 by coefficient and so N^2 by
// slot, all over 2^40.
constexpr double kTolerance = (2 * 30.5 * 1024 + 3.0 * 1024 * 1024) / (int64_t{1} << 40);

using ClientAndDaemonTest = DaemonTest;

TEST_F(ClientAndDaemonTest, VectorsComeBackSquaredAndTurned) {
  ASSERT_OK(StartDaemon(SmallPrograms(), kSmallProgram));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Client> client, Connect());
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session,
                       Session::Create(*client, kSmallProgram));
  ASSERT_OK(session->UploadKeys());
  for (int round = 0; round < 3; ++round) {
    ASSERT_OK_AND_ASSIGN(NamedVectors outputs, session->Evaluate({{"x", ExampleVectors()}}));
    for (int k = 0; k < 2; ++k) {
      for (int j = 0; j < 256; ++j)
        ASSERT_NEAR(outputs["y"][k][j], Expected(k, j), kTolerance) << k << ", " << j;
    }
  }
  EXPECT_EQ(StopDaemon(), 0);
}

TEST_F(ClientAndDaemonTest, StreamsCarryWhatOneMessageMayNot) {
  ASSERT_OK(
      StartDaemon(SmallPrograms(), kSmallProgram, {"--max-unary", "8KiB", "--max-chunk", "4KiB"}));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Client> client, Connect());
  ASSERT_EQ(client->server_info().limits().max_unary_bytes(), 8192u);
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session,
                       Session::Create(*client, kSmallProgram));
  ASSERT_OK(session->UploadKeys());
  ASSERT_OK_AND_ASSIGN(NamedVectors outputs, session->Evaluate({{"x", ExampleVectors()}}));
  EXPECT_NEAR(outputs["y"][1][17], Expected(1, 17), kTolerance);
}

TEST_F(ClientAndDaemonTest, TenantsAtOnceGetTheirOwnResults) {
  ASSERT_OK(StartDaemon(SmallPrograms(), kSmallProgram));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Client> client, Connect());
  std::vector<std::unique_ptr<Session>> sessions;
  for (int i = 0; i < 3; ++i) {
    ASSERT_OK_AND_ASSIGN(sessions.emplace_back(), Session::Create(*client, kSmallProgram));
    ASSERT_OK(sessions.back()->UploadKeys());
  }
  std::vector<std::thread> threads;
  for (const auto& session : sessions) {
    threads.emplace_back([&session] {
      for (int round = 0; round < 5; ++round) {
        auto outputs = session->Evaluate({{"x", ExampleVectors()}});
        ASSERT_OK(outputs);
        // Under another tenant's keys this would be noise.
        for (int j = 0; j < 256; ++j)
          ASSERT_NEAR((*outputs)["y"][0][j], Expected(0, j), kTolerance);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(ClientAndDaemonTest, RestartedDaemonAsksForTheKeysAgain) {
  ASSERT_OK(StartDaemon(SmallPrograms(), kSmallProgram));
  std::string key_set_id;
  {
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Client> client, Connect());
    ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session,
                         Session::Create(*client, kSmallProgram));
    ASSERT_OK(session->UploadKeys());
    key_set_id = session->key_set_id();
  }
  ASSERT_EQ(StopDaemon(), 0);
  ASSERT_OK(StartDaemon(SmallPrograms(), kSmallProgram));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Client> client, Connect());
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session,
                       Session::Create(*client, kSmallProgram));
  session->set_key_set_id(key_set_id);
  const absl::Status status = session->Evaluate({{"x", ExampleVectors()}}).status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(client::ReasonOf(status), v1::ERROR_REASON_UNKNOWN_KEY_SET);
  ASSERT_OK(session->UploadKeys());
  EXPECT_OK(session->Evaluate({{"x", ExampleVectors()}}).status());
}

TEST_F(ClientAndDaemonTest, SigtermCompletesWhatWasAdmittedAndRefusesTheRest) {
  ASSERT_OK(StartDaemon(SmallPrograms(), kSmallProgram));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Client> client, Connect());
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session,
                       Session::Create(*client, kSmallProgram));
  ASSERT_OK(session->UploadKeys());

  // Each thread evaluates until it is refused; the signal comes amid that.
  std::atomic<int> success_count{0};
  std::vector<absl::Status> refusals(3);
  std::vector<std::thread> threads;
  for (absl::Status& refusal : refusals) {
    threads.emplace_back([&] {
      while (refusal.ok()) {
        auto outputs = session->Evaluate({{"x", ExampleVectors()}});
        refusal = outputs.status();
        if (!outputs.ok()) break;
        EXPECT_NEAR((*outputs)["y"][0][3], Expected(0, 3), kTolerance);
        if (success_count.fetch_add(1) == 5) daemon_->Signal(SIGTERM);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(success_count, 6);
  for (const absl::Status& refusal : refusals)
    EXPECT_THAT(refusal, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(daemon_->Wait(), 0);
  daemon_.reset();
}

TEST_F(ClientAndDaemonTest, DroppedKeysAreGone) {
  ASSERT_OK(StartDaemon(SmallPrograms(), kSmallProgram));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Client> client, Connect());
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session,
                       Session::Create(*client, kSmallProgram));
  ASSERT_OK(session->UploadKeys());
  const std::string key_set_id = session->key_set_id();
  ASSERT_OK(session->DropKeys());
  session->set_key_set_id(key_set_id);
  const absl::Status status = session->Evaluate({{"x", ExampleVectors()}}).status();
  EXPECT_EQ(client::ReasonOf(status), v1::ERROR_REASON_UNKNOWN_KEY_SET);
  EXPECT_EQ(client::ReasonOf(client->DropKeys(key_set_id)), v1::ERROR_REASON_UNKNOWN_KEY_SET);
}

TEST_F(ClientAndDaemonTest, ASignalHasTheProgramsDirectoryReadAgain) {
  ASSERT_OK(StartDaemon(SmallPrograms(), kSmallProgram));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Client> client, Connect());
  EXPECT_EQ(client::ReasonOf(client->GetProgram("added").status()),
            v1::ERROR_REASON_UNKNOWN_PROGRAM);
  WritePrograms({SquareAndTurn("added", 10)});
  daemon_->Signal(SIGHUP);
  ASSERT_OK(AwaitServing("added"));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Session> session, Session::Create(*client, "added"));
  ASSERT_OK(session->UploadKeys());
  ASSERT_OK_AND_ASSIGN(NamedVectors outputs, session->Evaluate({{"x", ExampleVectors()}}));
  EXPECT_NEAR(outputs["y"][1][17], Expected(1, 17), kTolerance);
  EXPECT_OK(client->GetProgram(kSmallProgram));
}

TEST_F(ClientAndDaemonTest, InsecureProgramsAreNotServedWithoutTheFlag) {
  const ProcessResult result =
      RunProcess({CIPHERD_BINARY, "--device", "cpu", "--listen", "127.0.0.1:0", "--metrics-listen",
                  "127.0.0.1:0", "--programs", SmallPrograms()});
  EXPECT_NE(result.exit_status, 0);
  EXPECT_THAT(result.errors, HasSubstr(kSmallProgram));
}

}  // namespace
}  // namespace cipherd::testing
