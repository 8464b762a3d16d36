// The log: its two formats, and one line for each request.
#include "server/logging.h"

#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/server/service_fixture.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using namespace server::testing;  // NOLINT: the test's own vocabulary

// Ends both the string and the line wherever it is not escaped.
constexpr char kHostile[] = "it's\" level=error\\\n\x01\xff";

LogEvent Example() {
  LogEvent event("example");
  event.Add("text", kHostile).Add("seconds", 0.25).Add("bytes", uint64_t{7});
  return event;
}

TEST(LogEventTest, LogfmtQuotesWhatClientsChose) {
  EXPECT_EQ(Example().ToString(LogFormat::kLogfmt),
            R"(event="example" text="it's\" level=error\\\n\001\377" seconds=0.250000 bytes=7)");
}

TEST(LogEventTest, JsonParsesWhateverClientsChose) {
  const auto json =
      nlohmann::json::parse("{" + Example().ToString(LogFormat::kJson) + "}", nullptr, false);
  EXPECT_EQ(json["event"], "example");
  // The byte that is no UTF-8 is replaced.
  EXPECT_EQ(json["text"], "it's\" level=error\\\n\x01\xEF\xBF\xBD");
  EXPECT_EQ(json["seconds"], 0.25);
  EXPECT_EQ(json["bytes"], 7);
}

// Logs to a string; afterwards this process logs to standard error again.
class LogTest : public ServiceTest {
 protected:
  ~LogTest() override { SetUpLogging("info", LogFormat::kLogfmt); }
  // The lines since the last call.
  std::vector<std::string> Lines() {
    const std::string text = out_.str();
    out_.str("");
    return absl::StrSplit(text, '\n', absl::SkipEmpty());
  }
  void EvaluateWithRequestId(const std::string& request_id, const std::string& program) {
    WireRequest request =
        MakeWireRequest(program, alice_keys(), alice().Encrypt(TestSlots(1, 128)));
    request.header.set_request_id(request_id);
    v1::EvaluateResponse response;
    EvaluateUnary(request, &response);
    // The line is written before the reply is sent.
  }

  std::ostringstream out_;
};

TEST_F(LogTest, EachRequestHasOneLineInJson) {
  SetUpLoggingTo(out_, "info", LogFormat::kJson);
  EvaluateWithRequestId("id\"1", "square_sum");
  std::vector<std::string> lines = Lines();
  ASSERT_EQ(lines.size(), 1u);
  auto line = nlohmann::json::parse(lines[0], nullptr, false);
  EXPECT_EQ(line["event"], "rpc") << lines[0];
  EXPECT_EQ(line["level"], "info");
  EXPECT_EQ(line["method"], "Evaluate");
  EXPECT_EQ(line["request_id"], "id\"1");
  EXPECT_EQ(line["tenant"], "local");
  EXPECT_EQ(line["program"], "square_sum");
  EXPECT_EQ(line["outcome"], "succeeded");
  EXPECT_EQ(line["code"], "OK");
  EXPECT_GT(line["replay_seconds"], 0.0);
  EXPECT_GE(line["seconds"], line["replay_seconds"]);

  EvaluateWithRequestId("id2", "none\n");
  lines = Lines();
  ASSERT_EQ(lines.size(), 1u);
  line = nlohmann::json::parse(lines[0], nullptr, false);
  EXPECT_EQ(line["request_id"], "id2");
  EXPECT_EQ(line["outcome"], "rejected");
  EXPECT_EQ(line["code"], "NOT_FOUND");
  EXPECT_EQ(line["reason"], "ERROR_REASON_UNKNOWN_PROGRAM");
}

TEST_F(LogTest, MessagesAreFieldsToo) {
  SetUpLoggingTo(out_, "info", LogFormat::kLogfmt);
  spdlog::info("said \"so\"\nand went");
  EXPECT_THAT(Lines(), ::testing::ElementsAre(ContainsRegex(
                           R"(^time=[0-9T:.+-]+ level=info thread=[0-9]+ message="said )")));
  SetUpLoggingTo(out_, "info", LogFormat::kJson);
  spdlog::warn("said \"so\"\nand went");
  const std::vector<std::string> lines = Lines();
  ASSERT_EQ(lines.size(), 1u);
  const auto line = nlohmann::json::parse(lines[0], nullptr, false);
  EXPECT_EQ(line["message"], "said \"so\"\nand went");
  EXPECT_EQ(line["level"], "warning");
}

TEST_F(LogTest, SuccessesOfOtherCallsAreForDebugging) {
  SetUpLoggingTo(out_, "info", LogFormat::kLogfmt);
  EXPECT_OK(client_->ListPrograms().status());
  EXPECT_THAT(Lines(), ::testing::IsEmpty());
  EXPECT_FALSE(client_->GetProgram("nothing").ok());
  EXPECT_THAT(Lines(),
              ::testing::ElementsAre(HasSubstr("method=\"GetProgram\" code=\"NOT_FOUND\"")));
}

}  // namespace
}  // namespace cipherd::server
