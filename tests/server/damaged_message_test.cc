// Bytes that are no message of the call, where a message is expected.
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "proto/codec/tree_encoder.h"
#include "proto/grpc_status/grpc_status.h"
#include "tests/server/raw_call.h"
#include "tests/server/service_fixture.h"

namespace cipherd::server {
namespace {

using namespace server::testing;  // NOLINT: the test's own vocabulary

class DamagedMessageTest : public ServiceTest {
 protected:
  grpc::Status Send(const std::string& method, const std::vector<std::string>& messages) {
    return SendRaw(NewChannel(), "/cipherd.v1.EvaluationService/" + method, messages);
  }
};

TEST_F(DamagedMessageTest, AfterAWholePayloadIsAnError) {
  const WireRequest good =
      MakeWireRequest("square_sum", alice_keys(), alice().Encrypt(TestSlots(1, 128)));
  v1::EvaluateStreamRequest header, chunk;
  *header.mutable_header() = good.header;
  chunk.set_chunk(good.payload);
  const std::vector<std::string> whole = {header.SerializeAsString(), chunk.SerializeAsString()};
  EXPECT_TRUE(Send("EvaluateStream", whole).ok());
  for (const std::string& damaged :
       {std::string("\xff\xff\xff"), whole[1].substr(0, whole[1].size() / 2)}) {
    std::vector<std::string> messages = whole;
    messages.push_back(damaged);
    const grpc::Status status = Send("EvaluateStream", messages);
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_EQ(client::ReasonOf(FromGrpcStatus(status)), v1::ERROR_REASON_MALFORMED_VALUE);
  }
  EXPECT_EQ((*server_->engine().FindProgram("square_sum"))->trees().leased_count(), 0u);
}

TEST_F(DamagedMessageTest, AfterAWholeUploadStoresNothing) {
  const int64_t bytes_before = server_->engine().keys().used_bytes();
  const std::vector<value::ExactValue> keys = Party(client_->GetProgram("square_sum").value(), 77)
                                                  .MakeKeys(alice().program().required_keys);
  v1::PutKeysRequest header;
  header.mutable_header()->set_context_id(alice().program().known_context->id_bytes());
  header.mutable_header()->set_key_count(static_cast<uint32_t>(keys.size()));
  header.mutable_header()->set_total_bytes(alice().program().key_bytes);
  std::vector<std::string> messages = {header.SerializeAsString()};
  for (const value::ExactValue& key : keys) {
    v1::PutKeysRequest description, chunk;
    codec::PayloadSource payload =
        codec::EncodeValue(key, "key", description.mutable_key()).value();
    messages.push_back(description.SerializeAsString());
    while (payload.remaining_bytes() > 0) {
      payload.TakeInto(1 << 15, chunk.mutable_chunk());
      messages.push_back(chunk.SerializeAsString());
    }
  }
  messages.push_back("\xff\xff\xff");
  const grpc::Status status = Send("PutKeys", messages);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(server_->engine().keys().set_count(), 1u);
  EXPECT_EQ(server_->engine().keys().used_bytes(), bytes_before);
}

TEST_F(DamagedMessageTest, OfEveryOtherCallHasADetail) {
  for (const char* method :
       {"Evaluate", "GetProgram", "DropKeys", "GetServerInfo", "ListPrograms", "GetKeyUpload"}) {
    const grpc::Status status = Send(method, {"\xff\xff\xff"});
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << method;
    EXPECT_EQ(client::ReasonOf(FromGrpcStatus(status)), v1::ERROR_REASON_MALFORMED_VALUE) << method;
  }
  ExpectGoodRequestSucceeds();
}

}  // namespace
}  // namespace cipherd::server
