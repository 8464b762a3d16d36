// Several versions of a program side by side: each in a directory of its own, or beside the one of
// the program's own directory.
#include <algorithm>
#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "core/base/status_macros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "health.grpc.pb.h"
#include "tests/server/program_files.h"
#include "tests/testing/metrics_page.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server {
namespace {

using ::cipherd::testing::MetricsPage;
using ::cipherd::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace server::testing;  // NOLINT: the test's own vocabulary

class ProgramVersionsTest : public ProgramFilesTest {
 protected:
  void SetUp() override {
    ProgramFilesTest::SetUp();
    square_sum_ = SpecOf("square_sum");
  }

  // square_sum as `version`, whose result is `factor` times that of version 3: -1 or 1, told by
  // whether the number is even.
  programs::ProgramSpec Version(int64_t version) {
    programs::ProgramSpec spec = square_sum_;
    spec.version = version;
    if (version % 2 == 0) {
      spec.operations.push_back(
          {.name = "minus", .kind = programs::OperationKind::kNegate, .a = "sum"});
      spec.outputs[0].edge = "minus";
    }
    return spec;
  }
  static std::vector<double> ResultOf(int64_t version, const std::vector<double>& x) {
    std::vector<double> y = SquareSum(x);
    if (version % 2 == 0) std::for_each(y.begin(), y.end(), [](double& e) { e = -e; });
    return y;
  }

  absl::StatusOr<std::vector<double>> Evaluate(const client::ProgramPtr& program,
                                               const std::vector<double>& x) {
    CIPHERD_ASSIGN_OR_RETURN(const client::EvaluationResult result,
                             client_->Evaluate({.program = program,
                                                .key_set_id = alice_keys_,
                                                .request_id = "",
                                                .inputs = alice_->Encrypt(x)}));
    return alice_->Decrypt(result.outputs);
  }
  // That requests for `asked` (0: for none in particular) are served by `version`.
  void ExpectServes(uint32_t asked, int64_t version) {
    const std::vector<double> x = TestSlots(version, 128);
    ASSERT_OK_AND_ASSIGN(const client::ProgramPtr program,
                         client_->GetProgram("square_sum", asked));
    EXPECT_EQ(program->version, version);
    ASSERT_OK_AND_ASSIGN(const std::vector<double> y, Evaluate(program, x));
    EXPECT_LT(MaxDifference(y, ResultOf(version, x)), kTolerance);
  }
  void ExpectUnknown(uint32_t version) {
    const auto names_it =
        StatusIs(absl::StatusCode::kNotFound,
                 AllOf(HasSubstr("'square_sum'"), HasSubstr("version " + std::to_string(version))));
    EXPECT_THAT(client_->GetProgram("square_sum", version), names_it);
    client::ProgramDescription description = alice_->program();
    description.version = description.requested_version = version;
    const auto evaluated =
        Evaluate(std::make_shared<client::ProgramDescription>(description), TestSlots(1, 128));
    EXPECT_THAT(evaluated, names_it);
    EXPECT_EQ(client::ReasonOf(evaluated.status()), v1::ERROR_REASON_UNKNOWN_PROGRAM);
  }
  std::vector<int64_t> ListedVersions() {
    std::vector<int64_t> versions;
    const auto programs = client_->ListPrograms();
    EXPECT_OK(programs);
    for (const v1::ProgramSummary& program : *programs) {
      if (program.name() != "square_sum") continue;
      EXPECT_TRUE(program.ready()) << program.version();
      versions.push_back(program.version());
    }
    return versions;
  }
  bool IsServing(const std::string& service) {
    const auto stub = grpc::health::v1::Health::NewStub(NewChannel());
    grpc::health::v1::HealthCheckRequest request;
    request.set_service(service);
    grpc::health::v1::HealthCheckResponse response;
    grpc::ClientContext context;
    EXPECT_TRUE(stub->Check(&context, request, &response).ok());
    return response.status() == grpc::health::v1::HealthCheckResponse::SERVING;
  }

  programs::ProgramSpec square_sum_;
};

TEST_F(ProgramVersionsTest, TwoVersionsServeSideBySideEachWithItsOwnResult) {
  WriteVersion(Version(4));
  ASSERT_OK(server_->ReloadPrograms());
  EXPECT_THAT(ListedVersions(), ElementsAre(3, 4));
  ExpectServes(3, 3);
  ExpectServes(4, 4);
  ExpectServes(0, 4);
}

TEST_F(ProgramVersionsTest, AStreamNamesItsVersionToo) {
  WriteVersion(Version(4));
  ASSERT_OK(server_->ReloadPrograms());
  const std::vector<double> x = TestSlots(1, 128);
  WireRequest request = MakeWireRequest("square_sum", alice_keys(), alice().Encrypt(x));
  std::string outputs[2], unversioned;
  for (uint32_t version : {3, 4}) {
    request.header.set_program_version(version);
    EXPECT_TRUE(EvaluateStream(request, 1 << 12, &outputs[version - 3]).ok());
    v1::EvaluateResponse response;
    EXPECT_TRUE(EvaluateUnary(request, &response).ok());
    EXPECT_EQ(response.payload(), outputs[version - 3]);
  }
  request.header.set_program_version(0);
  EXPECT_TRUE(EvaluateStream(request, 1 << 12, &unversioned).ok());
  EXPECT_NE(outputs[0], outputs[1]);
  EXPECT_EQ(unversioned, outputs[1]);
}

TEST_F(ProgramVersionsTest, AnUnknownVersionIsNotFoundAndNamed) {
  ExpectUnknown(7);
  const auto ledger = server_->engine().ledger().Snapshot();
  EXPECT_EQ(ledger.count("unknown"), 0u) << "it counts under its program";
}

TEST_F(ProgramVersionsTest, InputsMustBeThoseOfTheVersionThatServes) {
  programs::ProgramSpec deeper = Version(5);
  deeper.inputs[0].depth = 1;
  WriteVersion(deeper);
  ASSERT_OK(server_->ReloadPrograms());
  const std::vector<double> x = TestSlots(1, 128);
  const auto evaluate = [&](uint32_t version, int depth) {
    WireRequest request = MakeWireRequest("square_sum", alice_keys(), alice().Encrypt(x, depth));
    request.header.set_program_version(version);
    v1::EvaluateResponse response;
    return EvaluateUnary(request, &response).error_code();
  };
  EXPECT_EQ(evaluate(3, 0), grpc::StatusCode::OK);
  EXPECT_EQ(evaluate(5, 1), grpc::StatusCode::OK);
  EXPECT_EQ(evaluate(0, 1), grpc::StatusCode::OK);
  EXPECT_EQ(evaluate(3, 1), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(evaluate(5, 0), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(evaluate(0, 0), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ProgramVersionsTest, VersionsComeAndGoUnderLoadWithoutDroppingARequest) {
  std::atomic<bool> is_over = false;
  std::atomic<int> failed = 0, served_by_4 = 0;
  std::atomic<int> served[2] = {0, 0};
  const auto run = [&](int client, uint32_t asked) {
    const client::ProgramPtr program = client_->GetProgram("square_sum", asked).value();
    Party party(program, 20 + client);
    const std::string keys = party.UploadKeys(*client_).value();
    for (int i = 0; !is_over; ++i) {
      const std::vector<double> x = TestSlots(1000 * client + i, 128);
      const auto result = client_->Evaluate(
          {.program = program, .key_set_id = keys, .request_id = "", .inputs = party.Encrypt(x)});
      if (!result.ok()) ADD_FAILURE() << ++failed << " " << result.status();
      if (result.ok()) {
        const std::vector<double> y = party.Decrypt(result->outputs);
        const bool is_of_4 = MaxDifference(y, ResultOf(4, x)) < kTolerance;
        if (is_of_4) ++served_by_4;
        EXPECT_TRUE((asked != 3 && is_of_4) || MaxDifference(y, ResultOf(3, x)) < kTolerance);
      }
      ++served[client];
    }
  };
  std::thread for_3(run, 0, 3), for_any(run, 1, 0);
  const auto await_more = [&] {
    const int before[2] = {served[0], served[1]};
    while (served[0] < before[0] + 3 || served[1] < before[1] + 3) std::this_thread::yield();
  };
  for (int round = 0; round < 5; ++round) {
    const int before = served_by_4;
    WriteVersion(Version(4));
    EXPECT_OK(server_->ReloadPrograms());
    await_more();
    EXPECT_GT(served_by_4, before);
    std::filesystem::remove_all(directory_.path() / "square_sum" / "4");
    EXPECT_OK(server_->ReloadPrograms());
    EXPECT_EQ(ServedVersion("square_sum"), 3);
    EXPECT_THAT(ListedVersions(), ElementsAre(3));
    await_more();
  }
  is_over = true;
  for_3.join();
  for_any.join();
  EXPECT_EQ(failed, 0);
  ExpectUnknown(4);
}

TEST_F(ProgramVersionsTest, AFailedLoadOfANewVersionLeavesTheOldOne) {
  Write(File("square_sum/4", "program.textproto"), "name: \"square_sum\"\nnonsense: 1\n");
  EXPECT_THAT(server_->ReloadPrograms(), StatusIs(absl::StatusCode::kInvalidArgument,
                                                  HasSubstr("square_sum/4/program.textproto:2")));
  EXPECT_THAT(ListedVersions(), ElementsAre(3));
  ExpectServes(0, 3);
  ExpectUnknown(4);
}

TEST_F(ProgramVersionsTest, ADirectoryOfAnotherNumberIsRefused) {
  for (const std::string directory : {"5", "04", "v4"}) {
    WriteSpec(Version(4), "square_sum/" + directory);
    EXPECT_THAT(
        server_->ReloadPrograms(),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr("square_sum/" + directory + "/program.textproto: version: expected '" +
                           directory + "', that of its directory, got '4'")));
    std::filesystem::remove_all(directory_.path() / "square_sum" / directory);
  }
  WriteSpec(Version(4), "square_sum/.4");
  EXPECT_OK(server_->ReloadPrograms()) << "is being put together";
  EXPECT_THAT(ListedVersions(), ElementsAre(3));
}

TEST_F(ProgramVersionsTest, OneVersionInTwoPlacesIsRefused) {
  const auto before = server_->engine().programs();
  WriteVersion(Version(3));
  EXPECT_THAT(server_->ReloadPrograms(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("square_sum/3: version 3 of program 'square_sum' is in "
                                 "square_sum already")));
  EXPECT_EQ(server_->engine().programs(), before);
  // What was there first keeps the number, wherever it is.
  std::filesystem::rename(directory_.path() / "square_sum" / "3",
                          directory_.path() / "square_sum" / "4");
  WriteVersion(Version(4));
  EXPECT_OK(server_->ReloadPrograms());
  WriteSpec(Version(4));
  EXPECT_THAT(server_->ReloadPrograms(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("square_sum: version 4 of program 'square_sum' is in "
                                 "square_sum/4 already")));
  EXPECT_THAT(ListedVersions(), ElementsAre(3, 4));
}

TEST_F(ProgramVersionsTest, AVersionThatComesLeavesTheOthersAsTheyAre) {
  const auto before = server_->engine().FindProgram("square_sum", 3);
  WriteVersion(Version(4));
  ASSERT_OK(server_->ReloadPrograms());
  EXPECT_EQ(*server_->engine().FindProgram("square_sum", 3), *before);
  // Read again, to the same number: replaced.
  WriteVersion(Version(4));
  const auto fourth = server_->engine().FindProgram("square_sum", 4);
  ASSERT_OK(server_->ReloadPrograms());
  EXPECT_EQ(*server_->engine().FindProgram("square_sum", 3), *before);
  EXPECT_NE(*server_->engine().FindProgram("square_sum", 4), *fourth);
  EXPECT_EQ(server_->engine().programs().size(), 3u) << "with negate";
}

TEST_F(ProgramVersionsTest, ThePlainDirectoryIsReplacedBesideTheOthers) {
  WriteVersion(Version(4));
  ASSERT_OK(server_->ReloadPrograms());
  WriteSpec(Version(7));
  ASSERT_OK(server_->ReloadPrograms());
  EXPECT_THAT(ListedVersions(), ElementsAre(4, 7));
  ExpectServes(4, 4);
  ExpectServes(0, 7);
  ExpectUnknown(3);
}

TEST_F(ProgramVersionsTest, APlainDirectoryMayBecomeOneOfVersions) {
  WriteVersion(square_sum_);
  std::filesystem::remove(File("square_sum", "program.textproto"));
  ASSERT_OK(server_->ReloadPrograms());
  EXPECT_THAT(ListedVersions(), ElementsAre(3));
  ExpectServes(3, 3);
  const auto before = server_->engine().programs();
  ASSERT_OK(server_->ReloadPrograms());
  EXPECT_EQ(server_->engine().programs(), before);
}

TEST_F(ProgramVersionsTest, WhatIsGoneServesOnUntilWhatHasComeCanBeLoaded) {
  std::filesystem::remove(File("square_sum", "program.textproto"));
  Write(File("square_sum/4", "program.textproto"), "nonsense: 1\n");
  EXPECT_THAT(server_->ReloadPrograms(), StatusIs(absl::StatusCode::kInvalidArgument));
  ExpectServes(0, 3);
  EXPECT_TRUE(IsServing("square_sum"));
  WriteVersion(Version(4));
  EXPECT_OK(server_->ReloadPrograms());
  EXPECT_THAT(ListedVersions(), ElementsAre(4));
  ExpectServes(0, 4);
}

TEST_F(ProgramVersionsTest, AProgramIsHealthyWhileAnyVersionIsReady) {
  WriteVersion(Version(4));
  ASSERT_OK(server_->ReloadPrograms());
  MetricsPage page = MetricsPage::Parse(server_->metrics().Text()).value();
  for (const char* version : {"3", "4"}) {
    EXPECT_EQ(page.Sum("cipherd_program_ready", {{"program", "square_sum"}, {"version", version}}),
              1);
  }
  EXPECT_EQ(page.Sum("cipherd_instances", {{"program", "square_sum"}}), 2 * 2);
  std::filesystem::remove_all(directory_.path() / "square_sum" / "4");
  ASSERT_OK(server_->ReloadPrograms());
  EXPECT_TRUE(IsServing("square_sum"));
  EXPECT_TRUE(IsServing(""));
  page = MetricsPage::Parse(server_->metrics().Text()).value();
  EXPECT_EQ(page.Sum("cipherd_program_ready", {{"program", "square_sum"}}), 1);
  EXPECT_EQ(page.Sum("cipherd_instances", {{"program", "square_sum"}}), 2);
  std::filesystem::remove_all(directory_.path() / "square_sum");
  ASSERT_OK(server_->ReloadPrograms());
  EXPECT_FALSE(IsServing("square_sum"));
  EXPECT_TRUE(IsServing("")) << "of the programs that are there";
}

class VersionsAtStartTest : public ProgramVersionsTest {
 protected:
  void SetUp() override { square_sum_ = SpecOf("square_sum"); }
};

TEST_F(VersionsAtStartTest, EveryVersionIsLoaded) {
  WriteVersion(Version(4));
  WriteVersion(Version(11));
  ASSERT_NO_FATAL_FAILURE(Start(TestOptions(directory_.path())));
  EXPECT_THAT(ListedVersions(), ElementsAre(3, 4, 11));
  for (uint32_t version : {3, 4, 11}) ExpectServes(version, version);
  ExpectServes(0, 11);
}

TEST_F(VersionsAtStartTest, UntilTheNewestIsReadyTheOneBeforeServes) {
  WriteVersion(Version(4));
  ASSERT_OK_AND_ASSIGN(server_, Server::Start(TestOptions(directory_.path()), base::Clock::Real()));
  ASSERT_OK(server_->engine().LoadProgram("square_sum", 3));
  ASSERT_NO_FATAL_FAILURE(Connect());
  ExpectServes(0, 3);
  ASSERT_OK_AND_ASSIGN(const auto fourth, client_->GetProgramMessage("square_sum", 4));
  EXPECT_FALSE(fourth.summary().ready());
  EXPECT_THAT(Evaluate(client_->GetProgram("square_sum", 4).value(), TestSlots(1, 128)),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("version 4 is not ready")));
  EXPECT_TRUE(IsServing("square_sum"));
  EXPECT_FALSE(IsServing("")) << "negate is not loaded";
  ASSERT_OK(server_->engine().LoadProgram("square_sum", 4));
  ExpectServes(0, 4);
}

TEST_F(VersionsAtStartTest, APlaceThatCannotBeUsedIsTheErrorOfTheStart) {
  WriteSpec(Version(4), "square_sum/5");
  EXPECT_THAT(Server::Start(TestOptions(directory_.path()), base::Clock::Real()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("square_sum/5/program")));
  std::filesystem::remove_all(directory_.path() / "square_sum" / "5");
  WriteVersion(Version(3));
  EXPECT_THAT(Server::Start(TestOptions(directory_.path()), base::Clock::Real()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("already")));
}

TEST_F(VersionsAtStartTest, AVersionThatTheDeviceCannotHoldLeavesTheOldOne) {
  ServerOptions options = TestOptions(directory_.path());
  options.device.pools.pinned_memory.budget_bytes = 16 << 20;
  ASSERT_NO_FATAL_FAILURE(Start(options));
  WriteVersion(Version(4));
  Write(File("square_sum/4", "serving.textproto"), "queue_capacity: 10000\n");
  EXPECT_THAT(server_->ReloadPrograms(), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(ListedVersions(), ElementsAre(3));
  ExpectServes(0, 3);
  Write(File("square_sum/4", "serving.textproto"), "queue_capacity: 2\n");
  EXPECT_OK(server_->ReloadPrograms());
  ExpectServes(0, 4);
}

}  // namespace
}  // namespace cipherd::server
