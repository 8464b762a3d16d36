// What the Open Inference Protocol refuses, it refuses for the reasons of the daemon's own service.
#include <cstring>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/inference_fixture.h"
#include "tests/server/raw_call.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace server::testing;  // NOLINT: the test's own vocabulary

TEST_F(InferenceTest, EachRefusalSaysWhatIsWrongAndLeavesNothingBehind) {
  Party stranger(client_->GetProgram("negate").value(), 5);
  const ckks::KeyLayout relinearization({ckks::KeyId::Relinearization()});
  const std::string incomplete_keys = alice().UploadKeys(*client_, &relinearization).value();
  const std::string foreign_keys = stranger.UploadKeys(*client_, &relinearization).value();
  using absl::StatusCode;
  struct Case {
    const char* name;
    std::function<void(ModelInferRequest&)> change;
    StatusCode code;
    v1::ErrorReason reason;
    const char* says;
  };
  const Case cases[] = {
      {"unknown model", [](auto& r) { r.set_model_name("nothing"); }, StatusCode::kNotFound,
       v1::ERROR_REASON_UNKNOWN_PROGRAM, "'nothing'"},
      {"unknown version", [](auto& r) { r.set_model_version("9"); }, StatusCode::kNotFound,
       v1::ERROR_REASON_UNKNOWN_PROGRAM, "version 9"},
      {"a version that is no number", [](auto& r) { r.set_model_version("latest"); },
       StatusCode::kInvalidArgument, v1::ERROR_REASON_MALFORMED_VALUE, "model_version: "},
      {"another context",
       [&](auto& r) {
         SetParameter(r, "context_id", stranger.program().known_context->id());
         r.clear_inputs();  // which is not looked at
       },
       StatusCode::kInvalidArgument, v1::ERROR_REASON_WRONG_CONTEXT, "parameters['context_id']: "},
      {"no context", [](auto& r) { r.mutable_parameters()->erase("context_id"); },
       StatusCode::kInvalidArgument, v1::ERROR_REASON_WRONG_CONTEXT, "parameters['context_id']: "},
      {"a context that is no digest", [](auto& r) { SetParameter(r, "context_id", "mine"); },
       StatusCode::kInvalidArgument, v1::ERROR_REASON_MALFORMED_VALUE,
       "parameters['context_id']: "},
      {"unknown key set", [](auto& r) { SetParameter(r, "key_set_id", std::string(64, 'a')); },
       StatusCode::kNotFound, v1::ERROR_REASON_UNKNOWN_KEY_SET, "unknown key set"},
      {"no key set", [](auto& r) { r.mutable_parameters()->erase("key_set_id"); },
       StatusCode::kNotFound, v1::ERROR_REASON_UNKNOWN_KEY_SET, "unknown key set"},
      {"a key set that is no digest",
       [&](auto& r) { SetParameter(r, "key_set_id", alice_keys() + "0"); },
       StatusCode::kInvalidArgument, v1::ERROR_REASON_MALFORMED_VALUE,
       "parameters['key_set_id']: "},
      {"a key set of another type",
       [](auto& r) { (*r.mutable_parameters())["key_set_id"].set_int64_param(5); },
       StatusCode::kInvalidArgument, v1::ERROR_REASON_MALFORMED_VALUE,
       "parameters['key_set_id']: "},
      {"a key set without a key that is read",
       [&](auto& r) { SetParameter(r, "key_set_id", incomplete_keys); },
       StatusCode::kFailedPrecondition, v1::ERROR_REASON_MISSING_KEY, "rotation(1)"},
      {"a key set of another context",
       [&](auto& r) { SetParameter(r, "key_set_id", foreign_keys); }, StatusCode::kInvalidArgument,
       v1::ERROR_REASON_WRONG_CONTEXT, "key_set_id"},
      {"another datatype", [](auto& r) { r.mutable_inputs(0)->set_datatype("INT64"); },
       StatusCode::kInvalidArgument, v1::ERROR_REASON_MALFORMED_VALUE,
       "inputs[0].datatype: expected UINT64"},
      {"another name", [](auto& r) { r.mutable_inputs(0)->set_name("z"); },
       StatusCode::kInvalidArgument, v1::ERROR_REASON_SIGNATURE_MISMATCH,
       "inputs[0].name: expected one of 'x'"},
      {"no inputs",
       [](auto& r) {
         r.clear_inputs();
         r.clear_raw_input_contents();
       },
       StatusCode::kInvalidArgument, v1::ERROR_REASON_SIGNATURE_MISMATCH,
       "inputs: expected 1 ('x'), got 0"},
      {"an input twice",
       [](auto& r) {
         *r.add_inputs() = r.inputs(0);
         r.add_raw_input_contents(r.raw_input_contents(0));
       },
       StatusCode::kInvalidArgument, v1::ERROR_REASON_SIGNATURE_MISMATCH, "inputs: expected 1"},
      {"another shape of the same size",
       [](auto& r) {
         r.mutable_inputs(0)->set_shape(0, 4);
         r.mutable_inputs(0)->set_shape(1, 2);
       },
       StatusCode::kInvalidArgument, v1::ERROR_REASON_MALFORMED_VALUE, "inputs[0].data.shape"},
      {"three components",
       [](auto& r) {
         r.mutable_inputs(0)->set_shape(0, 3);
         std::string& raw = *r.mutable_raw_input_contents(0);
         raw += raw.substr(0, raw.size() / 2);
       },
       StatusCode::kInvalidArgument, v1::ERROR_REASON_SIGNATURE_MISMATCH, "shape"},
      {"a shape that overflows",
       [](auto& r) {
         for (int i = 0; i < 3; ++i) r.mutable_inputs(0)->set_shape(i, INT64_MAX);
       },
       StatusCode::kInvalidArgument, v1::ERROR_REASON_MALFORMED_VALUE, "inputs[0].data.shape"},
      {"many dimensions", [](auto& r) { r.mutable_inputs(0)->mutable_shape()->Resize(1000, 1); },
       StatusCode::kInvalidArgument, v1::ERROR_REASON_LIMIT_EXCEEDED, "rank"},
      {"a word short",
       [](auto& r) { r.mutable_raw_input_contents(0)->resize(2 * 4 * 256 * 8 - 8); },
       StatusCode::kInvalidArgument, v1::ERROR_REASON_MALFORMED_VALUE,
       "byte_count: expected 16384"},
      {"a byte long", [](auto& r) { r.mutable_raw_input_contents(0)->push_back('\0'); },
       StatusCode::kInvalidArgument, v1::ERROR_REASON_MALFORMED_VALUE, "got 16385"},
      {"no contents", [](auto& r) { r.clear_raw_input_contents(); }, StatusCode::kInvalidArgument,
       v1::ERROR_REASON_MALFORMED_VALUE, "byte_count"},
      {"contents for two", [](auto& r) { r.add_raw_input_contents("12345678"); },
       StatusCode::kInvalidArgument, v1::ERROR_REASON_MALFORMED_VALUE,
       "raw_input_contents: expected 1"},
      {"contents of both kinds",
       [](auto& r) { r.mutable_inputs(0)->mutable_contents()->add_uint64_contents(1); },
       StatusCode::kInvalidArgument, v1::ERROR_REASON_MALFORMED_VALUE, "inputs[0].contents: "},
      {"contents of another type",
       [](auto& r) {
         r.clear_raw_input_contents();
         r.mutable_inputs(0)->mutable_contents()->add_fp64_contents(1);
       },
       StatusCode::kInvalidArgument, v1::ERROR_REASON_MALFORMED_VALUE,
       "inputs[0].contents: expected uint64_contents alone"},
      {"a residue above its prime",
       [](auto& r) { r.mutable_raw_input_contents(0)->at(8 * 100 + 7) ^= '\x80'; },
       StatusCode::kInvalidArgument, v1::ERROR_REASON_MALFORMED_VALUE,
       "inputs[0].data[row 0]: expected residues below the prime"},
      {"the last residue above its prime",
       [](auto& r) { r.mutable_raw_input_contents(0)->back() ^= '\x80'; },
       StatusCode::kInvalidArgument, v1::ERROR_REASON_MALFORMED_VALUE, "inputs[0].data[row 7]"},
      {"an output that is none", [](auto& r) { r.add_outputs()->set_name("z"); },
       StatusCode::kInvalidArgument, v1::ERROR_REASON_SIGNATURE_MISMATCH,
       "outputs[0].name: expected one of 'y'"},
      {"an output twice",
       [](auto& r) {
         r.add_outputs()->set_name("y");
         r.add_outputs()->set_name("y");
       },
       StatusCode::kInvalidArgument, v1::ERROR_REASON_SIGNATURE_MISMATCH,
       "outputs[1].name: expected each name once"},
      {"an id that is too long", [](auto& r) { r.set_id(std::string(65, 'r')); },
       StatusCode::kInvalidArgument, v1::ERROR_REASON_LIMIT_EXCEEDED, "request_id"},
      {"an id that is not printable", [](auto& r) { r.set_id("a\nb"); },
       StatusCode::kInvalidArgument, v1::ERROR_REASON_MALFORMED_VALUE, "request_id"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    ModelInferRequest request = Good();
    c.change(request);
    const absl::Status status = Infer(request);
    EXPECT_THAT(status, StatusIs(c.code, HasSubstr(c.says)));
    EXPECT_EQ(v1::ErrorReason_Name(client::ReasonOf(status)), v1::ErrorReason_Name(c.reason));
    EXPECT_EQ(LeasedTrees(), 0u);
    EXPECT_OK(Infer(Good()));
  }
  uint64_t rejected = 0;
  for (const auto& [program, counts] : server_->engine().ledger().Snapshot()) {
    rejected += counts.FinishedIn(engine::RequestState::kRejected);
    EXPECT_EQ(counts.in_flight, 0u);
  }
  EXPECT_EQ(rejected, std::size(cases));
  // Neither names nor payload that a client sent come back.
  ModelInferRequest request = Good();
  const uint64_t residue = 1234567890123456789;
  std::memcpy(request.mutable_raw_input_contents(0)->data(), &residue, sizeof(residue));
  EXPECT_THAT(std::string(Infer(request).message()), Not(HasSubstr("1234567890123456789")));
  request.mutable_inputs(0)->set_name("chosen");
  EXPECT_THAT(std::string(Infer(request).message()), Not(HasSubstr("chosen")));
}

TEST_F(InferenceTest, OneMessageEachWayAndItsBytesAreThoseOfTheCall) {
  const std::string good = Good().SerializeAsString();
  EXPECT_TRUE(SendRaw(NewChannel(), kModelInfer, {good}).ok());
  const std::vector<std::pair<std::vector<std::string>, v1::ErrorReason>> cases = {
      {{}, v1::ERROR_REASON_PROTOCOL},
      {{good, good}, v1::ERROR_REASON_PROTOCOL},
      {{"\xff\xff\xff"}, v1::ERROR_REASON_MALFORMED_VALUE},
      {{good.substr(0, good.size() / 2)}, v1::ERROR_REASON_MALFORMED_VALUE},
      {{good, "\xff\xff\xff"}, v1::ERROR_REASON_PROTOCOL},
  };
  for (const auto& [messages, reason] : cases) {
    const grpc::Status status = SendRaw(NewChannel(), kModelInfer, messages);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << messages.size();
    EXPECT_EQ(client::ReasonOf(FromGrpcStatus(status)), reason) << messages.size();
    EXPECT_EQ(LeasedTrees(), 0u);
  }
  for (const char* method :
       {"ServerLive", "ServerReady", "ModelReady", "ServerMetadata", "ModelMetadata"}) {
    const grpc::Status status = SendRaw(
        NewChannel(), std::string("/inference.GRPCInferenceService/") + method, {"\xff\xff\xff"});
    EXPECT_EQ(client::ReasonOf(FromGrpcStatus(status)), v1::ERROR_REASON_MALFORMED_VALUE) << method;
  }
  EXPECT_OK(Infer(Good()));
}

}  // namespace
}  // namespace cipherd::server
