// cipherctl, end to end, through files.
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "client/files/vector_file.h"
#include "nlohmann/json.hpp"
#include "tests/integration/daemon_fixture.h"
#include "tests/testing/relay.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::testing {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class CipherctlTest : public DaemonTest {
 protected:
  // With leave for the insecure context.
  ProcessResult Run(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), CIPHERCTL_BINARY);
    arguments.push_back("--allow-insecure-contexts");
    return RunProcess(arguments);
  }
  // With the daemon's address.
  ProcessResult RunOnline(std::vector<std::string> arguments) const {
    arguments.push_back("--server");
    arguments.push_back(address());
    return Run(std::move(arguments));
  }
  void WriteExample() const {
    client::Vectors vectors(2, std::vector<double>(256));
    for (int j = 0; j < 256; ++j) {
      vectors[0][j] = j / 256.0;
      vectors[1][j] = -j / 512.0;
    }
    std::ofstream(Path("x.csv")) << client::ToCsv(vectors);
  }
  mode_t ModeOf(const std::string& path) const {
    struct stat state = {};
    EXPECT_EQ(stat(path.c_str(), &state), 0) << path;
    return state.st_mode & 07777;
  }
};

#define EXPECT_SUCCESS(run)                                                  \
  do {                                                                       \
    const ProcessResult result_of_run = (run);                               \
    EXPECT_EQ(result_of_run.exit_status, 0) << #run << result_of_run.errors; \
  } while (false)

TEST_F(CipherctlTest, KeysVectorsAndResultsGoThroughFiles) {
  ASSERT_OK(StartDaemon(SmallPrograms(), kSmallProgram));
  WriteExample();
  EXPECT_SUCCESS(RunOnline({"keygen", "--program", kSmallProgram, "--keys", Path("keys")}));
  EXPECT_SUCCESS(RunOnline({"put-keys", "--keys", Path("keys")}));
  EXPECT_SUCCESS(Run({"encrypt", "--keys", Path("keys"), "--input", "x=" + Path("x.csv"),
                      "--output", Path("in.ct")}));
  EXPECT_SUCCESS(RunOnline({"evaluate", "--keys", Path("keys"), "--input", Path("in.ct"),
                            "--output", Path("out.ct"), "--request-id", "r1"}));

  const ProcessResult json = Run({"decrypt", "--keys", Path("keys"), "--input", Path("out.ct")});
  ASSERT_EQ(json.exit_status, 0) << json.errors;
  const auto outputs = nlohmann::json::parse(json.output, nullptr, false);
  ASSERT_EQ(outputs["y"].size(), 2u);
  // Slot 2j + k turned by one: y0[j] = x1[j]^2, y1[j] = x0[j + 1]^2. Tolerance as in
  // client_and_daemon_test.cc.
  EXPECT_NEAR(outputs["y"][0][100].get<double>(), (100 / 512.0) * (100 / 512.0), 1e-5);
  EXPECT_NEAR(outputs["y"][1][100].get<double>(), (101 / 256.0) * (101 / 256.0), 1e-5);

  const ProcessResult csv =
      Run({"decrypt", "--keys", Path("keys"), "--input", Path("out.ct"), "--format", "csv"});
  ASSERT_OK_AND_ASSIGN(const client::Vectors rows, client::ParseCsv(csv.output, "decrypt"));
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1][100], outputs["y"][1][100].get<double>());

  EXPECT_SUCCESS(RunOnline({"drop-keys", "--keys", Path("keys")}));
  const ProcessResult gone = RunOnline(
      {"evaluate", "--keys", Path("keys"), "--input", Path("in.ct"), "--output", Path("none.ct")});
  EXPECT_EQ(gone.exit_status, 1);
  EXPECT_THAT(gone.errors, HasSubstr("[UNKNOWN_KEY_SET]"));
}

TEST_F(CipherctlTest, AnUploadWhoseProcessWasKilledGoesOnFromWhereItWas) {
  constexpr char kProgram[] = "large_keys";
  ASSERT_OK(StartDaemon(WritePrograms({SquareAndTurn(kProgram, /*log_n=*/14)}), kProgram));
  EXPECT_SUCCESS(RunOnline({"keygen", "--program", kProgram, "--keys", Path("keys")}));
  const auto key_bytes =
      static_cast<int64_t>(std::filesystem::file_size(Path("keys") + "/evaluation.keys"));

  Relay relay(port());
  const auto put_keys = [&] {
    return std::vector<std::string>{
        CIPHERCTL_BINARY,           "put-keys", "--keys", Path("keys"), "--server", relay.address(),
        "--allow-insecure-contexts"};
  };
  relay.HoldRequestsAfter(key_bytes * 3 / 4);
  ASSERT_OK_AND_ASSIGN(Process upload, Process::Start(put_keys()));
  while (!relay.is_holding_requests()) std::this_thread::yield();
  upload.Signal(SIGKILL);
  EXPECT_EQ(upload.Wait(), -SIGKILL);
  relay.ReleaseRequests();

  const int64_t bytes_before = relay.bytes_to_daemon();
  EXPECT_SUCCESS(RunProcess(put_keys()));
  // What the daemon had not read yet when the connection broke comes again.
  EXPECT_LT(relay.bytes_to_daemon() - bytes_before, key_bytes * 9 / 10);
  EXPECT_SUCCESS(RunOnline({"drop-keys", "--keys", Path("keys")}));
}

// The program of daemon_fixture.h as version 1; version 2 beside it has the result of the other
// sign.
TEST_F(CipherctlTest, AVersionIsAskedForAndServedThroughFiles) {
  programs::ProgramSpec spec = SquareAndTurn(kSmallProgram, 10);
  const std::string programs = WritePrograms({spec});
  spec.version = 2;
  spec.operations.push_back(
      {.name = "minus", .kind = programs::OperationKind::kNegate, .a = "turned"});
  spec.outputs[0].edge = "minus";
  WriteProgram(spec, programs + "/" + kSmallProgram + "/2");
  ASSERT_OK(StartDaemon(programs, kSmallProgram));
  ASSERT_OK(AwaitServing(""));
  WriteExample();

  const auto result_of = [&](const std::string& keys, std::vector<std::string> keygen) {
    keygen.insert(keygen.begin(), {"keygen", "--program", kSmallProgram, "--keys", Path(keys)});
    EXPECT_SUCCESS(RunOnline(keygen));
    EXPECT_SUCCESS(RunOnline({"put-keys", "--keys", Path(keys)}));
    EXPECT_SUCCESS(Run({"encrypt", "--keys", Path(keys), "--input", "x=" + Path("x.csv"),
                        "--output", Path("in.ct")}));
    EXPECT_SUCCESS(RunOnline(
        {"evaluate", "--keys", Path(keys), "--input", Path("in.ct"), "--output", Path("out.ct")}));
    const ProcessResult json = Run({"decrypt", "--keys", Path(keys), "--input", Path("out.ct")});
    EXPECT_EQ(json.exit_status, 0) << json.errors;
    const auto outputs = nlohmann::json::parse(json.output, nullptr, false);
    return outputs["y"][1][100].get<double>();
  };
  const double square = (101 / 256.0) * (101 / 256.0);
  EXPECT_NEAR(result_of("keys1", {"--program-version", "1"}), square, 1e-5);
  EXPECT_NEAR(result_of("keys2", {"--program-version", "2"}), -square, 1e-5);
  EXPECT_NEAR(result_of("newest", {}), -square, 1e-5);

  const ProcessResult list = RunOnline({"programs"});
  EXPECT_THAT(list.output, ContainsRegex(std::string(kSmallProgram) + " +1 +yes"));
  EXPECT_THAT(list.output, ContainsRegex(std::string(kSmallProgram) + " +2 +yes"));
  const ProcessResult first = RunOnline({"programs", kSmallProgram, "--program-version", "1"});
  EXPECT_THAT(first.output, HasSubstr(std::string(kSmallProgram) + " version 1"));
  const ProcessResult load =
      RunOnline({"load", "--program", kSmallProgram, "--program-version",
                 std::string(kSmallProgram) + ":3", "--measurement-interval", "10"});
  for (const ProcessResult& unknown :
       {RunOnline({"programs", kSmallProgram, "--program-version", "3"}),
        RunOnline({"keygen", "--program", kSmallProgram, "--program-version", "3", "--keys",
                   Path("none")}),
        load}) {
    EXPECT_EQ(unknown.exit_status, 1);
    EXPECT_THAT(unknown.errors, HasSubstr("version 3"));
    EXPECT_THAT(unknown.errors, HasSubstr("[UNKNOWN_PROGRAM]"));
  }
}

TEST_F(CipherctlTest, SecretKeyIsPrivateAndNeverOverwritten) {
  ASSERT_OK(StartDaemon(SmallPrograms(), kSmallProgram));
  WriteExample();
  const std::vector<std::string> keygen = {"keygen", "--program", kSmallProgram, "--keys",
                                           Path("keys")};
  EXPECT_SUCCESS(RunOnline(keygen));
  const std::string secret_key = Path("keys/secret.key");
  EXPECT_EQ(ModeOf(secret_key), 0600);
  EXPECT_EQ(ModeOf(Path("keys")), 0700);

  const ProcessResult again = RunOnline(keygen);
  EXPECT_EQ(again.exit_status, 1);
  EXPECT_THAT(again.errors, HasSubstr("ALREADY_EXISTS"));

  ASSERT_EQ(chmod(secret_key.c_str(), 0644), 0);
  const ProcessResult refused = Run({"encrypt", "--keys", Path("keys"), "--input",
                                     "x=" + Path("x.csv"), "--output", Path("in.ct")});
  EXPECT_EQ(refused.exit_status, 1);
  EXPECT_THAT(refused.errors, HasSubstr("expected mode 0600, got 0644"));
}

TEST_F(CipherctlTest, SecretKeyFileInPlaceOfAnotherIsRefused) {
  ASSERT_OK(StartDaemon(SmallPrograms(), kSmallProgram));
  EXPECT_SUCCESS(RunOnline({"keygen", "--program", kSmallProgram, "--keys", Path("keys")}));
  const std::string secret_key = Path("keys/secret.key");
  const ProcessResult as_values = RunOnline(
      {"evaluate", "--keys", Path("keys"), "--input", secret_key, "--output", Path("none.ct")});
  EXPECT_EQ(as_values.exit_status, 1);
  ASSERT_EQ(rename(secret_key.c_str(), Path("keys/evaluation.keys").c_str()), 0);
  const ProcessResult as_keys = RunOnline({"put-keys", "--keys", Path("keys")});
  EXPECT_EQ(as_keys.exit_status, 1);
  EXPECT_THAT(as_keys.errors, HasSubstr("expected evaluation keys, got a secret key"));
}

TEST_F(CipherctlTest, TablesShowTheDaemonAndItsPrograms) {
  ASSERT_OK(StartDaemon(SmallPrograms(), kSmallProgram));
  const ProcessResult list = RunOnline({"programs"});
  EXPECT_EQ(list.exit_status, 0) << list.errors;
  EXPECT_THAT(list.output, HasSubstr(kSmallProgram));
  EXPECT_THAT(list.output, HasSubstr("yes"));
  const ProcessResult one = RunOnline({"programs", kSmallProgram});
  EXPECT_EQ(one.exit_status, 0) << one.errors;
  EXPECT_THAT(one.output, HasSubstr("up to 2 vectors of 256"));
  const ProcessResult status = RunOnline({"status"});
  EXPECT_EQ(status.exit_status, 0) << status.errors;
  EXPECT_THAT(status.output, HasSubstr("1 of 1"));
  EXPECT_THAT(status.output, HasSubstr("insecure contexts"));
  const ProcessResult unknown = RunOnline({"programs", "none"});
  EXPECT_EQ(unknown.exit_status, 1);
  EXPECT_THAT(unknown.errors, HasSubstr("[UNKNOWN_PROGRAM]"));
}

TEST_F(CipherctlTest, InsecureContextsNeedTheFlag) {
  ASSERT_OK(StartDaemon(SmallPrograms(), kSmallProgram));
  const ProcessResult refused = RunProcess({CIPHERCTL_BINARY, "keygen", "--program", kSmallProgram,
                                            "--keys", Path("keys"), "--server", address()});
  EXPECT_EQ(refused.exit_status, 1);
  EXPECT_THAT(refused.errors, HasSubstr("INVALID_ARGUMENT"));
  struct stat state = {};
  EXPECT_NE(stat(Path("keys").c_str(), &state), 0) << "keys were made for an insecure context";
}

TEST_F(CipherctlTest, UsageErrorsExitOtherwiseThanFailures) {
  const ProcessResult none = RunProcess({CIPHERCTL_BINARY});
  EXPECT_THAT(none.exit_status, Not(0));
  const ProcessResult help = RunProcess({CIPHERCTL_BINARY, "--help"});
  EXPECT_EQ(help.exit_status, 0);
  EXPECT_THAT(help.output, HasSubstr("keygen"));
}

}  // namespace
}  // namespace cipherd::testing
