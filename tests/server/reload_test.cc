// Programs whose directory changes while the daemon serves them.
#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/server/program_files.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;
using namespace server::testing;  // NOLINT: the test's own vocabulary

class ReloadTest : public ProgramFilesTest {};

TEST_F(ReloadTest, ADirectoryThatIsAsItWasChangesNothing) {
  const auto before = server_->engine().programs();
  ASSERT_OK(server_->ReloadPrograms());
  EXPECT_EQ(server_->engine().programs(), before);
}

TEST_F(ReloadTest, AChangedProgramIsReplacedWithoutDroppingARequest) {
  std::atomic<bool> is_over = false;
  std::atomic<int> served = 0, failed = 0;
  std::thread client([&] {
    const client::ProgramPtr program = client_->GetProgram("square_sum").value();
    for (int i = 0; !is_over; ++i) {
      const std::vector<double> x = TestSlots(i, 128);
      const auto result = client_->Evaluate({.program = program,
                                             .key_set_id = alice_keys_,
                                             .request_id = "",
                                             .inputs = alice_->Encrypt(x)});
      if (!result.ok() ||
          MaxDifference(alice_->Decrypt(result->outputs), SquareSum(x)) > kTolerance) {
        ++failed;
      }
      ++served;
    }
  });
  programs::ProgramSpec spec = SpecOf("square_sum");
  for (int64_t version : {4, 5, 6}) {
    spec.version = version;
    WriteSpec(spec);
    ASSERT_OK(server_->ReloadPrograms());
    EXPECT_EQ(ServedVersion("square_sum"), version);
    const int before = served;
    while (served < before + 3) std::this_thread::yield();
  }
  is_over = true;
  client.join();
  EXPECT_EQ(failed, 0);
  client::ClientOptions options;
  options.target = address();
  options.security_policy = ckks::SecurityPolicy::kAllowInsecure;
  ASSERT_OK_AND_ASSIGN(const auto fresh, client::Client::Connect(options));
  ASSERT_OK_AND_ASSIGN(const auto programs, fresh->ListPrograms());
  EXPECT_EQ(programs[1].version(), 6u);
}

TEST_F(ReloadTest, WhatCannotBeLoadedLeavesTheVersionThatServes) {
  Write(File("square_sum", "program.textproto"), "name: \"square_sum\"\nnonsense: 1\n");
  programs::ProgramSpec negate = SpecOf("negate");
  negate.version = 9;
  WriteSpec(negate);
  EXPECT_THAT(server_->ReloadPrograms(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("program.textproto:2")));
  ExpectGoodRequestSucceeds();
  EXPECT_EQ(ServedVersion("square_sum"), 3);
  EXPECT_EQ(ServedVersion("negate"), 9) << "the others are loaded all the same";
}

TEST_F(ReloadTest, ProgramsComeAndGo) {
  programs::ProgramSpec spec = SpecOf("negate");
  spec.name = "negate_again";
  WriteSpec(spec);
  std::filesystem::remove_all(directory_.path() / "negate");
  ASSERT_OK(server_->ReloadPrograms());
  EXPECT_TRUE((*server_->engine().FindProgram("negate_again"))->is_ready());
  EXPECT_THAT(server_->engine().FindProgram("negate"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(client_->GetProgram("negate"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_OK(client_->GetProgram("negate_again"));
  ExpectGoodRequestSucceeds();
}

TEST_F(ReloadTest, ServingSettingsAreReadBesideTheProgram) {
  Write(File("negate", "serving.textproto"),
        "instances: 1\nbatch_sizes: [1, 2]\nqueue_capacity: 3\npriority: -2\n"
        "max_batch_delay_seconds: 0.001\nlongest_timeout_seconds: 60\nconstant_memory_bytes: "
        "65536\n");
  ASSERT_OK(server_->ReloadPrograms());
  const engine::ServingSettings& settings = (*server_->engine().FindProgram("negate"))->settings();
  engine::ServingSettings expected = server_->engine().options().DefaultServing();
  expected.instances = 1;
  expected.batch_sizes = {1, 2};
  expected.queue_capacity = 3;
  expected.priority = -2;
  expected.max_batch_delay = absl::Milliseconds(1);
  expected.longest_timeout = absl::Seconds(60);
  expected.constant_memory_bytes = 65536;
  EXPECT_EQ(settings, expected);

  Write(File("negate", "serving.textproto"), "instances: 0\n");
  EXPECT_THAT(server_->ReloadPrograms(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("negate/serving.textproto: serving.instances")));
}

}  // namespace
}  // namespace cipherd::server
