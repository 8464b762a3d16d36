// Tenants by client certificate: each sees its own key sets only.
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "inference/grpc_service.grpc.pb.h"
#include "proto/codec/tree_encoder.h"
#include "proto/grpc_status/grpc_status.h"
#include "tests/server/tenants_fixture.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server {
namespace {

using ::cipherd::testing::StatusIs;
using namespace server::testing;  // NOLINT: the test's own vocabulary

TEST_F(TenantsTest, AKeySetIsUnknownToOtherTenants) {
  ASSERT_OK_AND_ASSIGN(const auto alice_client, Connect("alice"));
  ASSERT_OK_AND_ASSIGN(const auto mallory_client, Connect("mallory"));
  ASSERT_OK_AND_ASSIGN(const client::ProgramPtr program, alice_client->GetProgram("square_sum"));
  Party alice(program, 1);
  ASSERT_OK_AND_ASSIGN(const std::string keys, alice.UploadKeys(*alice_client));
  const std::vector<double> x = TestSlots(1, 128);
  const client::EvaluationRequest request = {
      .program = program, .key_set_id = keys, .request_id = "", .inputs = alice.Encrypt(x)};

  const absl::Status stolen = mallory_client->Evaluate(request).status();
  client::EvaluationRequest guessed = request;
  guessed.key_set_id = std::string(64, 'a');
  const absl::Status unknown = mallory_client->Evaluate(guessed).status();
  EXPECT_THAT(stolen, StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(client::ReasonOf(stolen), v1::ERROR_REASON_UNKNOWN_KEY_SET);
  EXPECT_EQ(client::ReasonOf(unknown), client::ReasonOf(stolen));
  EXPECT_THAT(mallory_client->DropKeys(keys), StatusIs(absl::StatusCode::kNotFound));

  ASSERT_OK_AND_ASSIGN(const client::EvaluationResult result, alice_client->Evaluate(request));
  EXPECT_LT(MaxDifference(alice.Decrypt(result.outputs), SquareSum(x)), kTolerance);

  // The name is the tenant, whatever the connection.
  ASSERT_OK_AND_ASSIGN(const auto again, Connect("alice"));
  EXPECT_OK(again->Evaluate(request));
}

TEST_F(TenantsTest, AKeySetIsUnknownToOtherTenantsOfTheOpenInferenceProtocol) {
  ASSERT_OK_AND_ASSIGN(const auto alice_client, Connect("alice"));
  Party alice(alice_client->GetProgram("square_sum").value(), 1);
  ASSERT_OK_AND_ASSIGN(const std::string keys, alice.UploadKeys(*alice_client));
  const WireRequest own = MakeWireRequest("square_sum", keys, alice.Encrypt(TestSlots(1, 128)));
  inference::ModelInferRequest request;
  request.set_model_name("square_sum");
  request.add_inputs()->set_name("x");
  request.mutable_inputs(0)->set_datatype("UINT64");
  for (const int64_t dimension : {2, 4, 256}) request.mutable_inputs(0)->add_shape(dimension);
  request.add_raw_input_contents(own.payload);
  auto& parameters = *request.mutable_parameters();
  parameters["context_id"].set_string_param(alice.program().known_context->id());
  parameters["key_set_id"].set_string_param(keys);
  const auto infer_as = [&](const std::string& name) {
    grpc::ClientContext context;
    inference::ModelInferResponse response;
    return FromGrpcStatus(inference::GRPCInferenceService::NewStub(NewChannelOf(name))
                              ->ModelInfer(&context, request, &response));
  };
  EXPECT_OK(infer_as("alice"));
  const absl::Status stolen = infer_as("mallory");
  EXPECT_THAT(stolen, StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(client::ReasonOf(stolen), v1::ERROR_REASON_UNKNOWN_KEY_SET);
  // No parameter makes a caller somebody else, and another's set is as one that is not there.
  parameters["tenant"].set_string_param("x509-san:alice");
  EXPECT_EQ(infer_as("mallory").message(), stolen.message());
  parameters["key_set_id"].set_string_param(std::string(64, 'a'));
  EXPECT_EQ(client::ReasonOf(infer_as("mallory")), client::ReasonOf(stolen));
}

TEST_F(TenantsTest, AnUploadIsItsTenantsAlone) {
  const auto alice = ConnectStub("alice"), mallory = ConnectStub("mallory");
  ASSERT_OK_AND_ASSIGN(const auto client, Connect("alice"));
  Party party(client->GetProgram("square_sum").value(), 1);
  const std::vector<value::ExactValue> keys = party.MakeKeys(party.program().required_keys);
  v1::PutKeysRequest header, description, chunk;
  header.mutable_header()->set_context_id(party.program().known_context->id_bytes());
  header.mutable_header()->set_key_count(static_cast<uint32_t>(keys.size()));
  header.mutable_header()->set_total_bytes(party.program().key_bytes);
  header.mutable_header()->set_upload_id("an upload of Alice's");
  codec::PayloadSource payload =
      codec::EncodeValue(keys[0], "key", description.mutable_key()).value();
  payload.TakeInto(1 << 14, chunk.mutable_chunk());
  const auto send = [](v1::EvaluationService::Stub& stub,
                       const std::vector<v1::PutKeysRequest>& messages) {
    grpc::ClientContext context;
    v1::PutKeysResponse response;
    const auto writer = stub.PutKeys(&context, &response);
    for (const v1::PutKeysRequest& message : messages) {
      if (!writer->Write(message)) break;
    }
    writer->WritesDone();
    return FromGrpcStatus(writer->Finish());
  };
  const auto received_bytes = [&](v1::EvaluationService::Stub& stub) -> absl::StatusOr<uint64_t> {
    grpc::ClientContext context;
    v1::GetKeyUploadRequest request;
    request.set_upload_id(header.header().upload_id());
    v1::GetKeyUploadResponse response;
    const absl::Status status = FromGrpcStatus(stub.GetKeyUpload(&context, request, &response));
    if (!status.ok()) return status;
    return response.received_bytes();
  };

  // An early end leaves it to be gone on with: by Alice.
  EXPECT_FALSE(send(*alice, {header, description, chunk}).ok());
  EXPECT_EQ(received_bytes(*alice).value_or(0), chunk.chunk().size());
  EXPECT_EQ(client::ReasonOf(received_bytes(*mallory).status()), v1::ERROR_REASON_UNKNOWN_UPLOAD);
  v1::PutKeysRequest resumed = header;
  resumed.mutable_header()->set_resume_bytes(chunk.chunk().size());
  EXPECT_EQ(client::ReasonOf(send(*mallory, {resumed})), v1::ERROR_REASON_UNKNOWN_UPLOAD);
  // Nor does it end with one of the same name.
  EXPECT_FALSE(send(*mallory, {header, chunk}).ok());
  EXPECT_EQ(received_bytes(*alice).value_or(0), chunk.chunk().size());
}

TEST_F(TenantsTest, ACommonNameIsNoAlternativeName) {
  ASSERT_OK_AND_ASSIGN(const auto alice_client, Connect("alice"));
  ASSERT_OK_AND_ASSIGN(const client::ProgramPtr program, alice_client->GetProgram("square_sum"));
  Party alice(program, 1);
  ASSERT_OK_AND_ASSIGN(const std::string keys, alice.UploadKeys(*alice_client));
  const client::EvaluationRequest request = {.program = program,
                                             .key_set_id = keys,
                                             .request_id = "",
                                             .inputs = alice.Encrypt(TestSlots(1, 128))};
  // The same name in the other place, alone or beside another's.
  for (const char* alternative_name : {"", "mallory"}) {
    ASSERT_OK_AND_ASSIGN(const auto other,
                         ConnectWith(authority_.IssueWithNames("alice", alternative_name)));
    EXPECT_THAT(other->Evaluate(request), StatusIs(absl::StatusCode::kNotFound));
  }
  // The alternative name alone decides.
  ASSERT_OK_AND_ASSIGN(const auto same,
                       ConnectWith(authority_.IssueWithNames("somebody", "alice")));
  EXPECT_OK(same->Evaluate(request));
}

TEST_F(TenantsTest, ACallerWithoutCertificateIsTurnedAway) {
  EXPECT_THAT(Connect(""), StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace cipherd::server
