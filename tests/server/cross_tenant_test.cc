// Every call that there is, made by one tenant with the ids of another: what comes back is, to the
// last byte, what comes back for ids that nobody has; whether tenants are known by certificate, by
// token, or by token behind one certificate. Where they have tokens, every call is refused without.
// A call that is added and not listed here fails the test.
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"
#include "inference/grpc_service.grpc.pb.h"
#include "proto/codec/context_codec.h"
#include "proto/codec/tree_encoder.h"
#include "tests/server/raw_call.h"
#include "tests/server/tenants_fixture.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server {
namespace {

using namespace server::testing;  // NOLINT: the test's own vocabulary
using Messages = std::vector<std::string>;

struct Outcome {
  int code = 0;
  std::string message;
  std::string details;
  Messages responses;

  bool operator==(const Outcome&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
  return out << outcome.code << " '" << outcome.message << "', " << outcome.details.size()
             << " bytes of details, " << outcome.responses.size() << " responses";
}

// What a request names.
struct Ids {
  std::string key_set_id;
  std::string upload_id;
};

Outcome Call(const std::shared_ptr<grpc::Channel>& channel, const std::string& method,
             const Messages& requests) {
  RawCall call(channel, method);
  for (const std::string& request : requests) {
    if (!call.Write(request)) break;
  }
  Outcome outcome;
  const grpc::Status status = call.Finish(&outcome.responses);
  outcome.code = status.error_code();
  outcome.message = status.error_message();
  outcome.details = status.error_details();
  if (method.ends_with("/ModelMetadata") && !outcome.responses.empty()) {
    // It has a map, whose order is nobody's.
    inference::ModelMetadataResponse response;
    EXPECT_TRUE(response.ParseFromString(outcome.responses[0]));
    outcome.responses = {response.DebugString()};
  }
  return outcome;
}

class CrossTenantTest : public TenantsTest, public ::testing::WithParamInterface<TenantsBy> {
 protected:
  CrossTenantTest() : TenantsTest(GetParam()) {}

  void SetUp() override {
    TenantsTest::SetUp();
    ASSERT_OK_AND_ASSIGN(client_, Connect("alice"));
    alice_ = std::make_unique<Party>(client_->GetProgram("square_sum").value(), 1);
    ASSERT_OK_AND_ASSIGN(alices_.key_set_id, alice_->UploadKeys(*client_));
    alices_.upload_id = "an upload of Alice's";
    alice_channel_ = NewChannelOf("alice");
    mallory_channel_ = NewChannelOf("mallory");
    BeginUpload();
  }

  v1::PutKeysRequest UploadHeader(const Ids& ids) const {
    v1::PutKeysRequest request;
    request.mutable_header()->set_context_id(alice_->program().known_context->id_bytes());
    request.mutable_header()->set_key_count(
        static_cast<uint32_t>(alice_->program().required_keys.size()));
    request.mutable_header()->set_total_bytes(alice_->program().key_bytes);
    request.mutable_header()->set_upload_id(ids.upload_id);
    return request;
  }
  // Leaves a part of an upload of Alice's behind.
  void BeginUpload() {
    v1::PutKeysRequest description, chunk;
    const std::vector<value::ExactValue> keys = alice_->MakeKeys(alice_->program().required_keys);
    codec::PayloadSource payload =
        codec::EncodeValue(keys[0], "key", description.mutable_key()).value();
    payload.TakeInto(kUploadedBytes, chunk.mutable_chunk());
    Call(alice_channel_, Method("PutKeys"),
         {UploadHeader(alices_).SerializeAsString(), description.SerializeAsString(),
          chunk.SerializeAsString()});
  }

  static std::string Method(const std::string& name) {
    return "/cipherd.v1.EvaluationService/" + name;
  }
  static std::string InferenceMethod(const std::string& name) {
    return "/inference.GRPCInferenceService/" + name;
  }

  // By method, the messages of a call that names `ids`. Inputs are good ones of square_sum.
  std::map<std::string, Messages> CallsWith(const Ids& ids) {
    const WireRequest evaluation =
        MakeWireRequest("square_sum", ids.key_set_id, alice_->Encrypt(TestSlots(1, 128)));
    v1::EvaluateRequest evaluate;
    *evaluate.mutable_header() = evaluation.header;
    evaluate.set_payload(evaluation.payload);
    v1::EvaluateStreamRequest stream_header, stream_chunk;
    *stream_header.mutable_header() = evaluation.header;
    stream_chunk.set_chunk(evaluation.payload);
    v1::DropKeysRequest drop;
    drop.set_key_set_id(codec::EncodeDigest(ids.key_set_id, "id").value());
    v1::GetKeyUploadRequest get_upload;
    get_upload.set_upload_id(ids.upload_id);
    v1::PutKeysRequest resumed = UploadHeader(ids);
    resumed.mutable_header()->set_resume_bytes(kUploadedBytes);
    v1::GetProgramRequest get_program;
    get_program.set_name("square_sum");

    inference::ModelInferRequest infer;
    infer.set_model_name("square_sum");
    infer.add_inputs()->set_name("x");
    infer.mutable_inputs(0)->set_datatype("UINT64");
    for (const int64_t dimension : {2, 4, 256}) infer.mutable_inputs(0)->add_shape(dimension);
    infer.add_raw_input_contents(evaluation.payload);
    auto& parameters = *infer.mutable_parameters();
    parameters["context_id"].set_string_param(alice_->program().known_context->id());
    parameters["key_set_id"].set_string_param(ids.key_set_id);
    inference::ModelReadyRequest model_ready;
    model_ready.set_name("square_sum");
    inference::ModelMetadataRequest model_metadata;
    model_metadata.set_name("square_sum");

    return {
        {Method("GetServerInfo"), {""}},
        {Method("ListPrograms"), {""}},
        {Method("GetProgram"), {get_program.SerializeAsString()}},
        {Method("PutKeys"), {resumed.SerializeAsString()}},
        {Method("GetKeyUpload"), {get_upload.SerializeAsString()}},
        {Method("DropKeys"), {drop.SerializeAsString()}},
        {Method("Evaluate"), {evaluate.SerializeAsString()}},
        {Method("EvaluateStream"),
         {stream_header.SerializeAsString(), stream_chunk.SerializeAsString()}},
        {InferenceMethod("ServerLive"), {""}},
        {InferenceMethod("ServerReady"), {""}},
        {InferenceMethod("ModelReady"), {model_ready.SerializeAsString()}},
        {InferenceMethod("ServerMetadata"), {""}},
        {InferenceMethod("ModelMetadata"), {model_metadata.SerializeAsString()}},
        {InferenceMethod("ModelInfer"), {infer.SerializeAsString()}},
    };
  }

  // Those whose answer depends on who asks.
  static bool ConcernsATenant(const std::string& method) {
    static const std::set<std::string> methods = {
        Method("PutKeys"),  Method("GetKeyUpload"),   Method("DropKeys"),
        Method("Evaluate"), Method("EvaluateStream"), InferenceMethod("ModelInfer"),
    };
    return methods.contains(method);
  }

  // Messages show the id that was asked for.
  static Outcome WithoutIds(Outcome outcome, const Ids& ids) {
    outcome.message = absl::StrReplaceAll(outcome.message, {{ids.key_set_id, "ID"}});
    outcome.details = absl::StrReplaceAll(outcome.details, {{ids.key_set_id, "ID"}});
    return outcome;
  }

  static constexpr int64_t kUploadedBytes = 1 << 14;

  Ids alices_;
  const Ids nobodys_ = {.key_set_id = std::string(64, 'a'), .upload_id = "an upload of nobody's"};
  std::shared_ptr<grpc::Channel> alice_channel_, mallory_channel_;
};

TEST_P(CrossTenantTest, EveryCallOfTheServicesIsListed) {
  std::set<std::string> listed, offered;
  for (const auto& [method, requests] : CallsWith(nobodys_)) listed.insert(method);
  for (const google::protobuf::FileDescriptor* file :
       {v1::EvaluateRequest::descriptor()->file(),
        inference::ModelInferRequest::descriptor()->file()}) {
    for (int i = 0; i < file->service_count(); ++i) {
      const google::protobuf::ServiceDescriptor& service = *file->service(i);
      for (int j = 0; j < service.method_count(); ++j) {
        offered.insert("/" + service.full_name() + "/" + service.method(j)->name());
      }
    }
  }
  EXPECT_EQ(listed, offered);
}

TEST_P(CrossTenantTest, AnothersIdsAnswerAsThoseThatNobodyHas) {
  const std::map<std::string, Messages> stolen = CallsWith(alices_), unknown = CallsWith(nobodys_);
  for (const auto& [method, requests] : stolen) {
    SCOPED_TRACE(method);
    const Outcome with_alices = Call(mallory_channel_, method, requests);
    const Outcome with_nobodys = Call(mallory_channel_, method, unknown.at(method));
    EXPECT_EQ(WithoutIds(with_alices, alices_), WithoutIds(with_nobodys, nobodys_));
    EXPECT_EQ(with_alices.code != grpc::StatusCode::OK, ConcernsATenant(method)) << with_alices;
    EXPECT_EQ(with_alices.responses.empty(), ConcernsATenant(method));
  }
  // Nothing of Alice's has changed, and hers she may use: the upload, the set, and then drop it.
  for (const char* name : {"GetKeyUpload", "Evaluate", "EvaluateStream", "DropKeys"}) {
    const Outcome own = Call(alice_channel_, Method(name), stolen.at(Method(name)));
    EXPECT_EQ(own.code, grpc::StatusCode::OK) << name << ": " << own;
  }
}

TEST_P(CrossTenantTest, WhatConcernsNoTenantIsTheSameForAll) {
  for (const auto& [method, requests] : CallsWith(alices_)) {
    if (ConcernsATenant(method)) continue;
    EXPECT_EQ(Call(alice_channel_, method, requests), Call(mallory_channel_, method, requests))
        << method;
  }
}

TEST_P(CrossTenantTest, AnUploadOfTheSameKeysDoesNotTellThatAnotherHasThem) {
  v1::PutKeysRequest header = UploadHeader({});
  Messages requests = {header.SerializeAsString()};
  for (const value::ExactValue& key : alice_->MakeKeys(alice_->program().required_keys)) {
    v1::PutKeysRequest description, chunk;
    codec::PayloadSource payload =
        codec::EncodeValue(key, "key", description.mutable_key()).value();
    payload.TakeInto(payload.total_bytes(), chunk.mutable_chunk());
    requests.push_back(description.SerializeAsString());
    requests.push_back(chunk.SerializeAsString());
  }
  const auto put_as = [&](const std::shared_ptr<grpc::Channel>& channel) {
    const Outcome outcome = Call(channel, Method("PutKeys"), requests);
    v1::PutKeysResponse response;
    EXPECT_EQ(outcome.code, grpc::StatusCode::OK) << outcome;
    EXPECT_TRUE(!outcome.responses.empty() && response.ParseFromString(outcome.responses[0]));
    return response;
  };
  EXPECT_FALSE(put_as(alice_channel_).existed());
  EXPECT_TRUE(put_as(alice_channel_).existed());
  EXPECT_FALSE(put_as(mallory_channel_).existed());
}

INSTANTIATE_TEST_SUITE_P(Tenants, CrossTenantTest,
                         ::testing::Values(TenantsBy::kCertificate, TenantsBy::kToken,
                                           TenantsBy::kTokenThroughGateway),
                         [](const auto& info) { return NameOf(info.param); });

class TokenRequiredTest : public CrossTenantTest {};

TEST_P(TokenRequiredTest, NoCallOfATenantsIsAnsweredWithoutItsToken) {
  const TokenSigner stranger(TokenSigner::Kind::kP256);
  std::map<std::string, std::shared_ptr<grpc::Channel>> channels;
  channels["none"] = NewChannelWith(CertificateOf("alice"), "");
  channels["a stranger's"] =
      NewChannelWith(CertificateOf("alice"), TokenOf("alice", stranger, "k1"));
  const std::string token = TokenOf("alice");
  clock_.Advance(kTokenLifetime + absl::Minutes(1));
  channels["an old one"] = NewChannelWith(CertificateOf("alice"), token);
  for (const auto& [whose, channel] : channels) {
    // Nobody learns what there is, nor whether a request would be lawful.
    std::optional<Outcome> first;
    for (const Ids& ids : {alices_, nobodys_}) {
      for (const auto& [method, requests] : CallsWith(ids)) {
        SCOPED_TRACE(method + ", token: " + whose);
        Outcome outcome = Call(channel, method, requests);
        EXPECT_EQ(outcome.code, grpc::StatusCode::UNAUTHENTICATED) << outcome;
        EXPECT_THAT(outcome.message, ::testing::StartsWith("authorization: "));
        EXPECT_THAT(outcome.message, ::testing::Not(::testing::HasSubstr(token.substr(0, 20))));
        if (!first.has_value()) first = outcome;
        EXPECT_EQ(outcome, *first);
        EXPECT_EQ(Call(channel, method, {"\xff\xff no message"}), *first);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tenants, TokenRequiredTest,
                         ::testing::Values(TenantsBy::kToken, TenantsBy::kTokenThroughGateway),
                         [](const auto& info) { return NameOf(info.param); });

}  // namespace
}  // namespace cipherd::server
