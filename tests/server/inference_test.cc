// The Open Inference Protocol answers what the daemon's own service answers.
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/util/json_util.h"
#include "gtest/gtest.h"
#include "server/version.h"
#include "tests/server/inference_fixture.h"
#include "tests/testing/metrics_page.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server {
namespace {

using ::cipherd::testing::MetricsPage;
using ::cipherd::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace server::testing;  // NOLINT: the test's own vocabulary

TEST_F(InferenceTest, ServerAnswersForItself) {
  grpc::ClientContext live_context, metadata_context;
  inference::ServerLiveResponse live;
  ASSERT_OK(FromGrpcStatus(inference_stub_->ServerLive(&live_context, {}, &live)));
  EXPECT_TRUE(live.live());
  ASSERT_OK_AND_ASSIGN(const bool ready, ServerReady());
  EXPECT_TRUE(ready);
  inference::ServerMetadataResponse metadata;
  ASSERT_OK(FromGrpcStatus(inference_stub_->ServerMetadata(&metadata_context, {}, &metadata)));
  EXPECT_EQ(metadata.name(), "cipherd");
  EXPECT_EQ(metadata.version(), kVersion);
}

TEST_F(InferenceTest, ReadinessIsByVersionAndWhatIsNotHereIsNotFound) {
  bool ready = false;
  for (const char* version : {"", "3"}) {
    EXPECT_OK(ModelReady("square_sum", version, &ready));
    EXPECT_TRUE(ready) << version;
  }
  const absl::Status unknown_version = ModelReady("square_sum", "4", &ready);
  EXPECT_THAT(unknown_version, StatusIs(absl::StatusCode::kNotFound, HasSubstr("version 4")));
  EXPECT_EQ(client::ReasonOf(unknown_version), v1::ERROR_REASON_UNKNOWN_PROGRAM);
  EXPECT_THAT(ModelReady("nothing", "", &ready),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("nothing")));
  for (const char* version : {"newest", "0", "-1", "+3", " 3", "3.0", "4294967299"}) {
    const absl::Status status = ModelReady("square_sum", version, &ready);
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("version: ")))
        << version;
    EXPECT_EQ(client::ReasonOf(status), v1::ERROR_REASON_MALFORMED_VALUE) << version;
  }
  // A second version, asked for by its number.
  programs::ProgramSpec next = SpecOf("square_sum");
  next.version = 4;
  WriteVersion(next);
  ASSERT_OK(server_->ReloadPrograms());
  EXPECT_OK(ModelReady("square_sum", "4", &ready));
  EXPECT_TRUE(ready);
  inference::ModelMetadataResponse metadata;
  ASSERT_OK(Describe("square_sum", "3", &metadata));
  EXPECT_THAT(metadata.versions(), ElementsAre("3", "4"));
  EXPECT_EQ(metadata.properties().at("version"), "3");
}

TEST_F(InferenceTest, NothingIsReadyBeforeItIsLoadedOrWhileTheDaemonIsOnItsWayOut) {
  ASSERT_OK(server_->Shutdown());
  server_.reset();
  ASSERT_OK_AND_ASSIGN(server_, Server::Start(TestOptions(directory_.path()), base::Clock::Real()));
  inference_stub_ = inference::GRPCInferenceService::NewStub(NewChannel());
  bool ready = true;
  EXPECT_OK(ModelReady("square_sum", "", &ready));
  EXPECT_FALSE(ready);
  EXPECT_EQ(ServerReady().value_or(true), false);
  ASSERT_OK(server_->engine().LoadProgram("square_sum"));
  EXPECT_OK(ModelReady("square_sum", "", &ready));
  EXPECT_TRUE(ready);
  EXPECT_EQ(ServerReady().value_or(true), false) << "others are not";
  for (const char* other : {"negate", "pair"}) ASSERT_OK(server_->engine().LoadProgram(other));
  EXPECT_EQ(ServerReady().value_or(false), true);

  ASSERT_OK_AND_ASSIGN(
      const auto client,
      client::Client::Connect(
          {.target = address(), .security_policy = ckks::SecurityPolicy::kAllowInsecure}));
  ASSERT_OK_AND_ASSIGN(alice_keys_, alice().UploadKeys(*client));
  server_->BeginLameDuck();
  EXPECT_EQ(ServerReady().value_or(true), false);
  EXPECT_OK(ModelReady("square_sum", "3", &ready));
  EXPECT_FALSE(ready);
  EXPECT_OK(Infer(Good())) << "until the lame-duck time is over";
}

TEST_F(InferenceTest, MetadataSayWhatItTakesToEncrypt) {
  inference::ModelMetadataResponse metadata;
  ASSERT_OK(Describe("pair", "", &metadata));
  EXPECT_EQ(metadata.name(), "pair");
  EXPECT_EQ(metadata.platform(), "cipherd");
  EXPECT_THAT(metadata.versions(), ElementsAre("7"));
  ASSERT_EQ(metadata.inputs_size(), 2);
  EXPECT_EQ(metadata.inputs(0).name(), "a");
  EXPECT_EQ(metadata.inputs(0).datatype(), "UINT64");
  EXPECT_THAT(metadata.inputs(0).shape(), ElementsAre(2, 4, 256));
  EXPECT_EQ(metadata.inputs(1).name(), "b");
  EXPECT_THAT(metadata.inputs(1).shape(), ElementsAre(2, 3, 256));
  ASSERT_EQ(metadata.outputs_size(), 2);
  EXPECT_EQ(metadata.outputs(1).name(), "b_out");
  EXPECT_THAT(metadata.outputs(1).shape(), ElementsAre(2, 3, 256));

  ASSERT_OK_AND_ASSIGN(const client::ProgramPtr program, client_->GetProgram("pair"));
  const auto& properties = metadata.properties();
  EXPECT_EQ(properties.at("version"), "7");
  EXPECT_EQ(properties.at("context_id"), program->known_context->id());
  EXPECT_EQ(properties.at("inputs.a.depth"), "0");
  EXPECT_EQ(properties.at("inputs.b.depth"), "1");
  EXPECT_EQ(properties.at("inputs.a.prime_ids"), "0,1,2,3");
  EXPECT_EQ(properties.at("outputs.b_out.prime_ids"), "1,2,3");
  EXPECT_EQ(properties.at("inputs.a.domain"), "ntt");
  EXPECT_EQ(std::stod(properties.at("inputs.b.scale")),
            program->context->parameters().default_scale);
  EXPECT_EQ(properties.at("inputs.a.layout"),
            R"({"item_count":1,"item_stride":1,"element_count":128,"element_stride":1})");
  EXPECT_EQ(properties.at("required_keys"), "");
  EXPECT_EQ(properties.at("input_bytes"), std::to_string(program->input_bytes));
  // All of the context, as protobuf writes it in JSON.
  v1::ContextParameters context;
  ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(properties.at("context"), &context).ok());
  ASSERT_OK_AND_ASSIGN(const v1::GetProgramResponse described, client_->GetProgramMessage("pair"));
  EXPECT_EQ(context.SerializeAsString(), described.context().SerializeAsString());

  ASSERT_OK(Describe("square_sum", "3", &metadata));
  EXPECT_EQ(metadata.properties().at("required_keys"), "relinearization,rotation:1");
  EXPECT_EQ(metadata.properties().at("key_bytes"), std::to_string(alice().program().key_bytes));
  EXPECT_THAT(Describe("square_sum", "2", &metadata), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(Describe("square_sum", "two", &metadata),
              StatusIs(absl::StatusCode::kInvalidArgument));
}

TEST_F(InferenceTest, ResultsAreThoseOfTheDaemonsOwnServiceBitForBit) {
  const WireRequest own = GoodOfTheDaemonsOwn(3);
  v1::EvaluateResponse expected;
  ASSERT_OK(FromGrpcStatus(EvaluateUnary(own, &expected)));
  ModelInferRequest request = Translate(own, {"x"});
  SetParameter(request, "context_id", alice().program().known_context->id());
  SetParameter(request, "key_set_id", alice_keys());
  request.set_id("r1");
  for (const char* version : {"", "3"}) {
    request.set_model_version(version);
    ModelInferResponse response;
    ASSERT_OK(Infer(request, &response));
    EXPECT_EQ(response.model_name(), "square_sum");
    EXPECT_EQ(response.model_version(), "3");
    EXPECT_EQ(response.id(), "r1");
    ASSERT_EQ(response.outputs_size(), 1);
    EXPECT_EQ(response.outputs(0).name(), "y");
    EXPECT_EQ(response.outputs(0).datatype(), "UINT64");
    EXPECT_THAT(response.outputs(0).shape(), ElementsAre(2, 3, 256));
    EXPECT_FALSE(response.outputs(0).has_contents());
    ASSERT_EQ(response.raw_output_contents_size(), 1);
    EXPECT_EQ(response.raw_output_contents(0), expected.payload());
  }
  // Words by their type in place of raw bytes; parameters that mean nothing here.
  auto* words = request.mutable_inputs(0)->mutable_contents()->mutable_uint64_contents();
  words->Resize(static_cast<int>(own.payload.size() / sizeof(uint64_t)), 0);
  std::memcpy(words->mutable_data(), own.payload.data(), own.payload.size());
  request.clear_raw_input_contents();
  (*request.mutable_parameters())["priority"].set_int64_param(1);
  SetParameter(request, "trace", "on");
  (*request.mutable_inputs(0)->mutable_parameters())["color"].set_bool_param(true);
  ModelInferResponse response;
  ASSERT_OK(Infer(request, &response));
  EXPECT_EQ(response.raw_output_contents(0), expected.payload());
}

TEST_F(InferenceTest, InputsAndOutputsGoByTheirNames) {
  ASSERT_OK_AND_ASSIGN(const client::ProgramPtr program, client_->GetProgram("pair"));
  Party bob(program, 21);
  const value::ValueTree a = bob.Encrypt(TestSlots(1, 128));
  const value::ValueTree b = bob.Encrypt(TestSlots(2, 128), /*depth=*/1);
  const WireRequest own = MakeWireRequest("pair", "", value::ValueTree::Tuple({a[0], b[0]}));
  v1::EvaluateResponse expected;
  ASSERT_OK(FromGrpcStatus(EvaluateUnary(own, &expected)));
  const size_t a_bytes = 2 * 4 * 256 * sizeof(uint64_t);
  const std::string a_out = expected.payload().substr(0, a_bytes);
  const std::string b_out = expected.payload().substr(a_bytes);

  ModelInferRequest request = Translate(own, {"a", "b"});
  SetParameter(request, "context_id", program->known_context->id());
  for (const bool swapped : {false, true}) {
    SCOPED_TRACE(swapped);
    if (swapped) {
      request.mutable_inputs()->SwapElements(0, 1);
      request.mutable_raw_input_contents()->SwapElements(0, 1);
    }
    ModelInferResponse response;
    request.clear_outputs();
    ASSERT_OK(Infer(request, &response));
    EXPECT_THAT(response.raw_output_contents(), ElementsAre(a_out, b_out));
    // One of them.
    request.add_outputs()->set_name("b_out");
    ASSERT_OK(Infer(request, &response));
    ASSERT_EQ(response.outputs_size(), 1);
    EXPECT_EQ(response.outputs(0).name(), "b_out");
    EXPECT_THAT(response.outputs(0).shape(), ElementsAre(2, 3, 256));
    EXPECT_THAT(response.raw_output_contents(), ElementsAre(b_out));
    request.add_outputs()->set_name("a_out");
    ASSERT_OK(Infer(request, &response));
    EXPECT_THAT(response.raw_output_contents(), ElementsAre(a_out, b_out));
  }
  // The names are not for show: shapes that were swapped are refused.
  request.mutable_inputs(0)->set_name("a");
  request.mutable_inputs(1)->set_name("b");
  EXPECT_EQ(client::ReasonOf(Infer(request)), v1::ERROR_REASON_MALFORMED_VALUE);
}

TEST_F(InferenceTest, CallsAreMeasuredLikeOthers) {
  EXPECT_OK(Infer(Good()));
  EXPECT_FALSE(Infer({}).ok());
  ASSERT_OK_AND_ASSIGN(const MetricsPage page, MetricsPage::Parse(server_->metrics().Text()));
  EXPECT_EQ(
      page.Sum("cipherd_rpc_duration_seconds_count", {{"code", "OK"}, {"method", "ModelInfer"}}),
      1);
  EXPECT_EQ(page.Sum("cipherd_rpc_duration_seconds_count",
                     {{"code", "NOT_FOUND"}, {"method", "ModelInfer"}}),
            1);
  for (const char* stage : {"decode", "replay", "encode"}) {
    EXPECT_EQ(page.Sum("cipherd_stage_duration_seconds_count",
                       {{"program", "square_sum"}, {"stage", stage}}),
              1);
  }
  EXPECT_EQ(page.Sum("cipherd_requests_finished_total", {{"outcome", "succeeded"}}), 1);
  EXPECT_EQ(page.Sum("cipherd_requests_finished_total", {{"outcome", "rejected"}}), 1);
}

TEST_F(InferenceTest, ADeadlineThatHasPassedEndsTheRequest) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() - std::chrono::seconds(1));
  ModelInferResponse response;
  EXPECT_EQ(inference_stub_->ModelInfer(&context, Good(), &response).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  EXPECT_OK(Infer(Good()));
}

}  // namespace
}  // namespace cipherd::server
