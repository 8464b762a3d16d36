// The trace of a call: what is taken from its metadata, and where it goes.
#include "server/trace_context.h"

#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "server/logging.h"
#include "tests/server/service_fixture.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using namespace server::testing;  // NOLINT: the test's own vocabulary

const std::string kTraceId = "4bf92f3577b34da6a3ce929d0e0e4736";
const std::string kSpanId = "00f067aa0ba902b7";
const std::string kTraceParent = "00-" + kTraceId + "-" + kSpanId + "-01";

// Nothing that the standard allows.
std::vector<std::string> Malformed() {
  const std::string ids = kTraceId + "-" + kSpanId;
  std::string upper = kTraceParent;
  upper[3 + 1] = 'B';
  std::vector<std::string> malformed = {
      "",
      "00",
      kTraceParent.substr(0, kTraceParent.size() - 1),
      kTraceParent + "0",
      // Version 00 has no more than this.
      kTraceParent + "-01",
      "ff-" + ids + "-01",
      "0g-" + ids + "-01",
      "FF-" + ids + "-01",
      // A later version, without the separator.
      "01-" + ids + "-01x",
      "00-" + ids + "-0G",
      "00-" + std::string(32, '0') + "-" + kSpanId + "-01",
      "00-" + kTraceId + "-" + std::string(16, '0') + "-01",
      upper,
      " " + kTraceParent.substr(1),
      std::string(kTraceParent.size(), '-'),
      std::string(10000, '0'),
  };
  for (const size_t separator : {2, 35, 52}) {
    malformed.push_back(kTraceParent);
    malformed.back()[separator] = '_';
  }
  for (size_t i = 0; i < kTraceParent.size(); ++i) {
    malformed.push_back(kTraceParent);
    malformed.back()[i] = 'z';
  }
  return malformed;
}

TEST(TraceContextTest, TakesWhatTheStandardWrites) {
  // Versions to come keep these fields, and may have more.
  for (const std::string& text :
       {kTraceParent, "00-" + kTraceId + "-" + kSpanId + "-00", "01" + kTraceParent.substr(2),
        "fe" + kTraceParent.substr(2) + "-more"}) {
    const std::optional<TraceContext> trace = TraceContext::Parse(text);
    ASSERT_TRUE(trace.has_value()) << text;
    EXPECT_EQ(trace->trace_id, kTraceId);
    EXPECT_EQ(trace->span_id, kSpanId);
  }
}

TEST(TraceContextTest, TakesNothingElse) {
  for (const std::string& text : Malformed()) {
    EXPECT_FALSE(TraceContext::Parse(text).has_value()) << text;
  }
}

// Logs to a string; afterwards this process logs to standard error again.
class TraceLogTest : public ServiceTest {
 protected:
  void SetUp() override {
    ServiceTest::SetUp();
    SetUpLoggingTo(out_, "info", LogFormat::kJson);
  }
  ~TraceLogTest() override { SetUpLogging("info", LogFormat::kLogfmt); }

  using Metadata = std::vector<std::string>;
  static void AddTo(grpc::ClientContext& context, const Metadata& traceparents) {
    for (const std::string& text : traceparents) context.AddMetadata("traceparent", text);
  }
  // The one line since the last call.
  nlohmann::json Line() {
    const std::string text = out_.str();
    out_.str("");
    const std::vector<std::string> lines = absl::StrSplit(text, '\n', absl::SkipEmpty());
    EXPECT_EQ(lines.size(), 1u) << text;
    return nlohmann::json::parse(lines.empty() ? "" : lines[0], nullptr, false);
  }
  nlohmann::json LineOfEvaluate(const Metadata& traceparents) {
    const WireRequest request =
        MakeWireRequest("square_sum", alice_keys(), alice().Encrypt(TestSlots(1, 128)));
    v1::EvaluateRequest message;
    *message.mutable_header() = request.header;
    message.set_payload(request.payload);
    grpc::ClientContext context;
    AddTo(context, traceparents);
    v1::EvaluateResponse response;
    EXPECT_TRUE(stub_->Evaluate(&context, message, &response).ok());
    return Line();
  }

  std::ostringstream out_;
};

TEST_F(TraceLogTest, ARequestsLineNamesTheCallersSpan) {
  const nlohmann::json line = LineOfEvaluate({kTraceParent});
  EXPECT_EQ(line["method"], "Evaluate");
  EXPECT_EQ(line["outcome"], "succeeded");
  EXPECT_EQ(line["trace_id"], kTraceId);
  EXPECT_EQ(line["span_id"], kSpanId);
}

TEST_F(TraceLogTest, WithoutOneOrWithSeveralOrMalformedOnesTheLineNamesNone) {
  std::vector<Metadata> all = {{}, {kTraceParent, kTraceParent}};
  // What HTTP/2 lets through as it is.
  for (const char* text : {"00-1-2-01", "it's\" level=error", "{}"}) all.push_back({text});
  for (const Metadata& metadata : all) {
    const nlohmann::json line = LineOfEvaluate(metadata);
    EXPECT_EQ(line["outcome"], "succeeded");
    EXPECT_FALSE(line.contains("trace_id")) << line;
    EXPECT_FALSE(line.contains("span_id")) << line;
  }
}

TEST_F(TraceLogTest, CallsOfEveryKindNameIt) {
  {
    grpc::ClientContext context;
    AddTo(context, {kTraceParent});
    v1::GetProgramResponse response;
    v1::GetProgramRequest request;
    request.set_name("none");
    EXPECT_FALSE(stub_->GetProgram(&context, request, &response).ok());
  }
  EXPECT_EQ(Line()["trace_id"], kTraceId);
  {
    grpc::ClientContext context;
    AddTo(context, {kTraceParent});
    const auto stream = stub_->EvaluateStream(&context);
    stream->WritesDone();
    EXPECT_FALSE(stream->Finish().ok());
  }
  EXPECT_EQ(Line()["trace_id"], kTraceId);
  {
    grpc::ClientContext context;
    AddTo(context, {kTraceParent});
    v1::DropKeysRequest request;
    request.set_key_set_id("short");
    v1::DropKeysResponse response;
    EXPECT_FALSE(stub_->DropKeys(&context, request, &response).ok());
  }
  EXPECT_EQ(Line()["trace_id"], kTraceId);
}

TEST_F(TraceLogTest, MetricsDoNotKnowOfIt) {
  LineOfEvaluate({kTraceParent});
  EXPECT_THAT(server_->metrics().Text(), Not(HasSubstr(kTraceId)));
  EXPECT_THAT(server_->metrics().Text(), Not(HasSubstr(kSpanId)));
}

}  // namespace
}  // namespace cipherd::server
