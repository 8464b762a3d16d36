// Uploads of key sets: complete, or without a trace.
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "proto/codec/context_codec.h"
#include "proto/codec/error_detail.h"
#include "proto/codec/tree_encoder.h"
#include "proto/grpc_status/grpc_status.h"
#include "tests/server/service_fixture.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server {
namespace {

using ::cipherd::testing::StatusIs;
using namespace server::testing;  // NOLINT: the test's own vocabulary

class PutKeysTest : public ServiceTest {
 protected:
  void SetUp() override {
    ServiceTest::SetUp();
    bob_ = std::make_unique<Party>(client_->GetProgram("square_sum").value(), 31);
    keys_ = bob_->MakeKeys(bob_->program().required_keys);
    bytes_before_ = server_->engine().keys().used_bytes();
  }

  v1::PutKeysRequest Header(uint32_t key_count, uint64_t total_bytes) {
    v1::PutKeysRequest message;
    message.mutable_header()->set_context_id(bob_->program().known_context->id_bytes());
    message.mutable_header()->set_key_count(key_count);
    message.mutable_header()->set_total_bytes(total_bytes);
    return message;
  }
  // Description and chunks of a key.
  std::vector<v1::PutKeysRequest> Messages(const value::ExactValue& key) {
    std::vector<v1::PutKeysRequest> messages(1);
    codec::PayloadSource payload =
        codec::EncodeValue(key, "key", messages[0].mutable_key()).value();
    while (payload.remaining_bytes() > 0) {
      payload.TakeInto(1 << 15, messages.emplace_back().mutable_chunk());
    }
    return messages;
  }
  uint64_t TotalBytes() const {
    uint64_t total = 0;
    for (const value::ExactValue& key : keys_) total += key.tensors[0].second.bytes();
    return total;
  }
  std::vector<v1::PutKeysRequest> GoodUpload() {
    std::vector<v1::PutKeysRequest> messages = {
        Header(static_cast<uint32_t>(keys_.size()), TotalBytes())};
    for (const value::ExactValue& key : keys_) {
      for (v1::PutKeysRequest& message : Messages(key)) messages.push_back(std::move(message));
    }
    return messages;
  }

  absl::StatusOr<v1::PutKeysResponse> Send(const std::vector<v1::PutKeysRequest>& messages) {
    grpc::ClientContext context;
    v1::PutKeysResponse response;
    const auto writer = stub_->PutKeys(&context, &response);
    for (const v1::PutKeysRequest& message : messages) {
      if (!writer->Write(message)) break;
    }
    writer->WritesDone();
    const grpc::Status status = writer->Finish();
    if (!status.ok()) return FromGrpcStatus(status);
    return response;
  }

  std::unique_ptr<Party> bob_;
  std::vector<value::ExactValue> keys_;
  int64_t bytes_before_ = 0;
};

TEST_F(PutKeysTest, ASetIsStoredOnceUnderTheHashOfItsContent) {
  ASSERT_OK_AND_ASSIGN(const v1::PutKeysResponse first, Send(GoodUpload()));
  EXPECT_FALSE(first.existed());
  EXPECT_EQ(first.key_set_id().size(), 32u);
  // The order of the keys is not part of the identity.
  std::swap(keys_.front(), keys_.back());
  ASSERT_OK_AND_ASSIGN(const v1::PutKeysResponse second, Send(GoodUpload()));
  EXPECT_TRUE(second.existed());
  EXPECT_EQ(second.key_set_id(), first.key_set_id());
  EXPECT_EQ(server_->engine().keys().used_bytes(),
            bytes_before_ + static_cast<int64_t>(TotalBytes()));
}

TEST_F(PutKeysTest, EachBrokenUploadHasItsStatusAndLeavesNothing) {
  struct Case {
    const char* name;
    std::vector<v1::PutKeysRequest> messages;
    absl::StatusCode code;
    v1::ErrorReason reason;
  };
  const auto changed = [&](auto change) {
    std::vector<v1::PutKeysRequest> messages = GoodUpload();
    change(messages);
    return messages;
  };
  const uint64_t total = TotalBytes();
  using absl::StatusCode;
  const Case cases[] = {
      {"nothing", {}, StatusCode::kInvalidArgument, v1::ERROR_REASON_PROTOCOL},
      {"a key first", changed([](auto& m) { m.erase(m.begin()); }), StatusCode::kInvalidArgument,
       v1::ERROR_REASON_PROTOCOL},
      {"two headers", changed([](auto& m) { m.insert(m.begin(), m.front()); }),
       StatusCode::kInvalidArgument, v1::ERROR_REASON_PROTOCOL},
      {"a chunk before its key", changed([](auto& m) { m.erase(m.begin() + 1); }),
       StatusCode::kInvalidArgument, v1::ERROR_REASON_PROTOCOL},
      {"half an upload", changed([](auto& m) { m.resize(m.size() / 2); }),
       StatusCode::kInvalidArgument, v1::ERROR_REASON_MALFORMED_VALUE},
      {"a key twice",
       [&] {
         std::vector<v1::PutKeysRequest> messages = {Header(2, 2 * total / keys_.size())};
         for (int i = 0; i < 2; ++i) {
           for (auto& message : Messages(keys_[0])) messages.push_back(std::move(message));
         }
         return messages;
       }(),
       StatusCode::kInvalidArgument, v1::ERROR_REASON_MALFORMED_VALUE},
      {"a flipped bit", changed([](auto& m) { m[2].mutable_chunk()->back() ^= '\x80'; }),
       StatusCode::kInvalidArgument, v1::ERROR_REASON_MALFORMED_VALUE},
      {"an unknown context",
       changed([](auto& m) { m[0].mutable_header()->set_context_id(std::string(32, 'c')); }),
       StatusCode::kInvalidArgument, v1::ERROR_REASON_WRONG_CONTEXT},
      {"a key of another context",
       changed([](auto& m) { m[1].mutable_key()->set_context_id(std::string(32, 'c')); }),
       StatusCode::kInvalidArgument, v1::ERROR_REASON_WRONG_CONTEXT},
      {"a secret key",
       changed([](auto& m) { m[1].mutable_key()->set_type(v1::VALUE_TYPE_SECRET_KEY); }),
       StatusCode::kInvalidArgument, v1::ERROR_REASON_SECRET_KEY_REFUSED},
      {"a ciphertext as a key",
       changed([](auto& m) { m[1].mutable_key()->set_type(v1::VALUE_TYPE_CIPHERTEXT); }),
       StatusCode::kInvalidArgument, v1::ERROR_REASON_SIGNATURE_MISMATCH},
      {"more bytes than declared",
       changed([&](auto& m) { m[0].mutable_header()->set_total_bytes(total / 2); }),
       StatusCode::kInvalidArgument, v1::ERROR_REASON_MALFORMED_VALUE},
      {"more bytes than any set may have",
       changed([&](auto& m) { m[0].mutable_header()->set_total_bytes(uint64_t{1} << 50); }),
       StatusCode::kInvalidArgument, v1::ERROR_REASON_LIMIT_EXCEEDED},
      {"more bytes than the device may keep",
       {Header(700, 700 * total / keys_.size())},
       StatusCode::kInvalidArgument,
       v1::ERROR_REASON_LIMIT_EXCEEDED},
  };
  const size_t pinned = server_->engine().device().pinned_memory_stats().allocated_bytes;
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const absl::Status status = Send(c.messages).status();
    EXPECT_EQ(status.code(), c.code) << std::string(status.ToString());
    const std::optional<v1::ErrorDetail> detail = codec::GetErrorDetail(status);
    ASSERT_TRUE(detail.has_value()) << std::string(status.ToString());
    EXPECT_EQ(v1::ErrorReason_Name(detail->reason()), v1::ErrorReason_Name(c.reason))
        << std::string(status.ToString());
    EXPECT_EQ(server_->engine().keys().used_bytes(), bytes_before_);
    EXPECT_EQ(server_->engine().keys().set_count(), 1u);
    EXPECT_EQ(server_->engine().device().pinned_memory_stats().allocated_bytes, pinned);
  }
  EXPECT_OK(Send(GoodUpload()));
  ExpectGoodRequestSucceeds();
}

TEST_F(PutKeysTest, AnUploadThatIsCancelledLeavesNothing) {
  const std::vector<v1::PutKeysRequest> messages = GoodUpload();
  grpc::ClientContext context;
  v1::PutKeysResponse response;
  const auto writer = stub_->PutKeys(&context, &response);
  for (size_t i = 0; i < messages.size() / 2; ++i) ASSERT_TRUE(writer->Write(messages[i]));
  while (server_->engine().keys().used_bytes() == bytes_before_) std::this_thread::yield();
  context.TryCancel();
  EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::CANCELLED);
  while (server_->engine().keys().used_bytes() != bytes_before_) std::this_thread::yield();
  EXPECT_EQ(server_->engine().keys().set_count(), 1u);
}

TEST_F(PutKeysTest, UploadsBeyondTheBudgetAreRefusedUntilThereIsRoom) {
  // Reservations of uploads under way count, and sets in use do not make room.
  const auto in_use = server_->engine().keys().Acquire("local", alice_keys());
  const int64_t budget = server_->engine().keys().budget_bytes();
  ASSERT_OK_AND_ASSIGN(auto a, server_->engine().keys().Reserve("other", budget / 2));
  ASSERT_OK_AND_ASSIGN(auto b,
                       server_->engine().keys().Reserve("other", budget / 2 - bytes_before_ - 1));
  const absl::Status refused = Send(GoodUpload()).status();
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(codec::GetErrorDetail(refused)->reason(), v1::ERROR_REASON_OVERLOADED);
  { auto freed = std::move(a); }
  EXPECT_OK(Send(GoodUpload()));
}

}  // namespace
}  // namespace cipherd::server
