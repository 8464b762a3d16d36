// Uploads of keys that break and go on.
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "proto/codec/context_codec.h"
#include "proto/codec/error_detail.h"
#include "proto/codec/tree_encoder.h"
#include "proto/grpc_status/grpc_status.h"
#include "tests/server/service_fixture.h"
#include "tests/testing/relay.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server {
namespace {

using ::cipherd::testing::Relay;
using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;
using namespace server::testing;  // NOLINT: the test's own vocabulary

const char kUploadId[] = "an upload of sixteen bytes or more";

class UploadResumeTest : public ServiceTest {
 protected:
  void SetUp() override { StartKeeping(absl::Minutes(10)); }
  void StartKeeping(absl::Duration keep) {
    ServerOptions options = TestOptions(directory_.path());
    options.transport.upload_resume_timeout = keep;
    Start(options);
    bob_ = std::make_unique<Party>(client_->GetProgram("square_sum").value(), 31);
    keys_ = bob_->MakeKeys(bob_->program().required_keys);
    bytes_before_ = store().used_bytes();
  }
  engine::KeyStore& store() { return server_->engine().keys(); }

  v1::PutKeysRequest Header(uint64_t resume_bytes = 0) {
    v1::PutKeysRequest message;
    message.mutable_header()->set_context_id(bob_->program().known_context->id_bytes());
    message.mutable_header()->set_key_count(static_cast<uint32_t>(keys_.size()));
    message.mutable_header()->set_total_bytes(bob_->program().key_bytes);
    message.mutable_header()->set_upload_id(kUploadId);
    message.mutable_header()->set_resume_bytes(resume_bytes);
    return message;
  }
  // Descriptions and chunks of all keys.
  std::vector<v1::PutKeysRequest> Body() {
    std::vector<v1::PutKeysRequest> messages;
    for (const value::ExactValue& key : keys_) {
      codec::PayloadSource payload =
          codec::EncodeValue(key, "key", messages.emplace_back().mutable_key()).value();
      while (payload.remaining_bytes() > 0) {
        payload.TakeInto(1 << 14, messages.emplace_back().mutable_chunk());
      }
    }
    return messages;
  }
  static uint64_t PayloadBytes(const std::vector<v1::PutKeysRequest>& messages, size_t count) {
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; ++i) bytes += messages[i].chunk().size();
    return bytes;
  }
  // Sends header and messages, and breaks off or half-closes.
  absl::StatusOr<v1::PutKeysResponse> Send(const v1::PutKeysRequest& header,
                                           std::span<const v1::PutKeysRequest> messages,
                                           bool breaks) {
    grpc::ClientContext context;
    v1::PutKeysResponse response;
    const auto writer = stub_->PutKeys(&context, &response);
    bool sends = writer->Write(header);
    for (const v1::PutKeysRequest& message : messages) sends = sends && writer->Write(message);
    if (breaks) {
      // Not before the header has come.
      while (store().used_bytes() == bytes_before_) std::this_thread::yield();
      context.TryCancel();
    } else {
      writer->WritesDone();
    }
    const grpc::Status status = writer->Finish();
    if (!status.ok()) return FromGrpcStatus(status);
    return response;
  }
  absl::StatusOr<v1::GetKeyUploadResponse> Find() {
    while (true) {
      grpc::ClientContext context;
      v1::GetKeyUploadRequest request;
      request.set_upload_id(kUploadId);
      v1::GetKeyUploadResponse response;
      const absl::Status status = FromGrpcStatus(stub_->GetKeyUpload(&context, request, &response));
      // The broken stream lets go.
      if (absl::IsUnavailable(status)) continue;
      if (!status.ok()) return status;
      return response;
    }
  }
  std::string TrueId() {
    codec::KeySetIdBuilder id(bob_->program().known_context->id_bytes());
    for (const value::ExactValue& key : keys_) {
      id.Add(codec::KeyIdOf(key, "key").value(), codec::PayloadDigest(key, "key").value());
    }
    return base::ToHex(id.Finish());
  }

  std::unique_ptr<Party> bob_;
  std::vector<value::ExactValue> keys_;
  int64_t bytes_before_ = 0;
};

TEST_F(UploadResumeTest, AnUploadGoesOnWhereverItBroke) {
  const std::vector<v1::PutKeysRequest> body = Body();
  int went_on = 0;
  for (size_t cut = 1; cut < body.size(); ++cut) {
    SCOPED_TRACE(cut);
    EXPECT_FALSE(Send(Header(), std::span(body).first(cut), /*breaks=*/true).ok());
    // What was cancelled may have been lost on the way; with no payload nothing is kept.
    const absl::StatusOr<v1::GetKeyUploadResponse> found = Find();
    if (!found.ok()) {
      ASSERT_EQ(client::ReasonOf(found.status()), v1::ERROR_REASON_UNKNOWN_UPLOAD);
    }
    const v1::GetKeyUploadResponse kept = found.value_or(v1::GetKeyUploadResponse());
    went_on += kept.received_bytes() > 0;
    EXPECT_EQ(store().set_count(), 1u) << "half an upload is nowhere to be seen";
    ASSERT_LE(kept.received_bytes(), PayloadBytes(body, cut));
    std::vector<v1::PutKeysRequest> rest;
    uint64_t at = 0;
    uint32_t described = 0;
    for (const v1::PutKeysRequest& message : body) {
      if (message.has_key() ? ++described > kept.described_keys() || kept.received_bytes() == 0
                            : at >= kept.received_bytes()) {
        rest.push_back(message);
      }
      at += message.chunk().size();
    }
    ASSERT_OK_AND_ASSIGN(const v1::PutKeysResponse stored,
                         Send(Header(kept.received_bytes()), rest, /*breaks=*/false));
    EXPECT_EQ(stored.key_set_id(), codec::EncodeDigest(TrueId(), "id").value());
    EXPECT_FALSE(stored.existed());
    // For a client who did not hear of it.
    ASSERT_OK_AND_ASSIGN(const v1::GetKeyUploadResponse done, Find());
    EXPECT_EQ(done.key_set_id(), stored.key_set_id());
    ASSERT_OK(client_->DropKeys(TrueId()));
    EXPECT_EQ(store().used_bytes(), bytes_before_);
  }
  EXPECT_GT(went_on, 0);
}

TEST_F(UploadResumeTest, WhatIsNotGoneOnWithExpires) {
  ASSERT_OK(server_->Shutdown());
  StartKeeping(absl::Milliseconds(1500));
  const std::vector<v1::PutKeysRequest> body = Body();
  do {
    EXPECT_FALSE(Send(Header(), std::span(body).first(body.size() / 2), /*breaks=*/true).ok());
  } while (!Find().ok());
  EXPECT_GT(store().used_bytes(), bytes_before_);
  while (store().used_bytes() != bytes_before_) std::this_thread::yield();
  const absl::Status unknown = Find().status();
  EXPECT_THAT(unknown, StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(client::ReasonOf(unknown), v1::ERROR_REASON_UNKNOWN_UPLOAD);
  const absl::Status late = Send(Header(16384), {}, /*breaks=*/false).status();
  EXPECT_EQ(client::ReasonOf(late), v1::ERROR_REASON_UNKNOWN_UPLOAD);
}

TEST_F(UploadResumeTest, OneThatGoesOnMustKnowWhatHasCome) {
  const std::vector<v1::PutKeysRequest> body = Body();
  absl::StatusOr<v1::GetKeyUploadResponse> found = absl::UnknownError("");
  while (!found.ok()) {
    EXPECT_FALSE(Send(Header(), std::span(body).first(4), /*breaks=*/true).ok());
    found = Find();
  }
  const v1::GetKeyUploadResponse kept = *found;
  EXPECT_THAT(Send(Header(kept.received_bytes() + 8), {}, false),
              StatusIs(absl::StatusCode::kFailedPrecondition));
  ASSERT_OK_AND_ASSIGN(const v1::GetKeyUploadResponse still, Find());
  EXPECT_EQ(still.received_bytes(), kept.received_bytes()) << "the mistake cost nothing";
  // One that begins anew gives the old up.
  ASSERT_OK(Send(Header(), body, /*breaks=*/false));
  EXPECT_EQ(store().used_bytes(), bytes_before_ + static_cast<int64_t>(bob_->program().key_bytes));
}

TEST_F(UploadResumeTest, AnEarlyEndKeepsExactlyWhatCame) {
  const std::vector<v1::PutKeysRequest> body = Body();
  for (const size_t cut : {size_t{2}, size_t{3}, body.size() / 2, body.size() - 1}) {
    SCOPED_TRACE(cut);
    const std::span<const v1::PutKeysRequest> sent = std::span(body).first(cut);
    EXPECT_THAT(Send(Header(), sent, /*breaks=*/false),
                StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_EQ(store().set_count(), 1u);
    ASSERT_OK_AND_ASSIGN(const v1::GetKeyUploadResponse kept, Find());
    EXPECT_EQ(kept.received_bytes(), PayloadBytes(body, cut));
    EXPECT_EQ(kept.described_keys(),
              std::count_if(sent.begin(), sent.end(), [](const auto& m) { return m.has_key(); }));
    ASSERT_OK_AND_ASSIGN(
        const v1::PutKeysResponse stored,
        Send(Header(kept.received_bytes()), std::span(body).subspan(cut), /*breaks=*/false));
    EXPECT_EQ(stored.key_set_id(), codec::EncodeDigest(TrueId(), "id").value());
    ASSERT_OK(client_->DropKeys(TrueId()));
  }
}

TEST_F(UploadResumeTest, AnUploadGoesOnUnderItsOwnHeader) {
  const std::vector<v1::PutKeysRequest> body = Body();
  const auto other = client_->GetProgram("negate").value()->known_context->id_bytes();
  const auto change = [&](int which, v1::KeySetHeader& header) {
    if (which == 0) header.set_total_bytes(header.total_bytes() + 8);
    if (which == 1) header.set_key_count(header.key_count() + 1);
    if (which == 2) header.set_context_id(other);
  };
  for (int which = 0; which < 3; ++which) {
    SCOPED_TRACE(which);
    EXPECT_FALSE(Send(Header(), std::span(body).first(4), /*breaks=*/false).ok());
    ASSERT_OK_AND_ASSIGN(const v1::GetKeyUploadResponse kept, Find());
    v1::PutKeysRequest header = Header(kept.received_bytes());
    change(which, *header.mutable_header());
    const absl::Status refused =
        Send(header, std::span(body).subspan(4), /*breaks=*/false).status();
    EXPECT_THAT(refused, StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_EQ(client::ReasonOf(refused), v1::ERROR_REASON_PROTOCOL);
  }
  EXPECT_EQ(store().used_bytes(), bytes_before_);
}

TEST_F(UploadResumeTest, OnlyANamedUploadGoesOnAndItsNameHasBounds) {
  for (const size_t size : {1, 15, 65}) {
    v1::PutKeysRequest header = Header();
    header.mutable_header()->set_upload_id(std::string(size, 'x'));
    const absl::Status refused = Send(header, {}, /*breaks=*/false).status();
    EXPECT_THAT(refused, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("upload_id")));
    EXPECT_EQ(client::ReasonOf(refused), v1::ERROR_REASON_MALFORMED_VALUE);
  }
  v1::PutKeysRequest nameless = Header(/*resume_bytes=*/8);
  nameless.mutable_header()->clear_upload_id();
  EXPECT_EQ(client::ReasonOf(Send(nameless, {}, /*breaks=*/false).status()),
            v1::ERROR_REASON_PROTOCOL);
  EXPECT_EQ(store().used_bytes(), bytes_before_);
}

TEST_F(UploadResumeTest, OneStreamHasAnUpload) {
  const std::vector<v1::PutKeysRequest> body = Body();
  grpc::ClientContext context;
  v1::PutKeysResponse response;
  const auto writer = stub_->PutKeys(&context, &response);
  ASSERT_TRUE(writer->Write(Header()));
  while (store().used_bytes() == bytes_before_) std::this_thread::yield();
  const absl::Status second = Send(Header(), body, /*breaks=*/false).status();
  EXPECT_THAT(second, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_TRUE(client::RetryDelayOf(second).has_value());
  // The first was told to let go.
  EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(UploadResumeTest, AnUploadUnderWayIsNotToBeSeen) {
  grpc::ClientContext context, asking;
  v1::PutKeysResponse response;
  const auto writer = stub_->PutKeys(&context, &response);
  ASSERT_TRUE(writer->Write(Header()));
  while (store().used_bytes() == bytes_before_) std::this_thread::yield();
  EXPECT_EQ(store().set_count(), 1u);
  v1::GetKeyUploadRequest request;
  request.set_upload_id(kUploadId);
  v1::GetKeyUploadResponse progress;
  EXPECT_EQ(stub_->GetKeyUpload(&asking, request, &progress).error_code(),
            grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(writer->Finish().error_code(), grpc::StatusCode::CANCELLED);
}

TEST_F(UploadResumeTest, AnUploadThatFailsIsNotKept) {
  std::vector<v1::PutKeysRequest> body = Body();
  body[1].mutable_chunk()->back() ^= '\x80';
  EXPECT_THAT(Send(Header(), body, false), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(Find(), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(store().used_bytes(), bytes_before_);
}

TEST_F(UploadResumeTest, TheClientGoesOnByItselfWhenTheConnectionBreaks) {
  Relay relay(server_->port());
  client::ClientOptions options;
  options.target = relay.address();
  options.security_policy = ckks::SecurityPolicy::kAllowInsecure;
  ASSERT_OK_AND_ASSIGN(const auto client, client::Client::Connect(options));
  for (int64_t allowance : {3000, 50'000, 90'000, 130'000}) {
    SCOPED_TRACE(allowance);
    const int cuts = relay.cut_count();
    ASSERT_OK_AND_ASSIGN(const auto upload,
                         client->StartKeyUpload({.context = bob_->program().known_context,
                                                 .key_count = static_cast<int>(keys_.size()),
                                                 .total_bytes = bob_->program().key_bytes}));
    relay.CutAfter(allowance);
    for (const value::ExactValue& key : keys_) ASSERT_OK(upload->Add(key));
    ASSERT_OK_AND_ASSIGN(const std::string id, upload->Finish());
    EXPECT_EQ(id, TrueId());
    if (relay.cut_count() > cuts) {
      EXPECT_GE(upload->resume_count(), 1);
    }
    ASSERT_OK(client_->DropKeys(id));
  }
  EXPECT_GE(relay.cut_count(), 2);
  EXPECT_EQ(store().used_bytes(), bytes_before_);
}

TEST_F(UploadResumeTest, AnUploadThatIsDroppedIsNotKept) {
  ASSERT_OK_AND_ASSIGN(auto upload,
                       client_->StartKeyUpload({.context = bob_->program().known_context,
                                                .key_count = static_cast<int>(keys_.size()),
                                                .total_bytes = bob_->program().key_bytes,
                                                .upload_id = kUploadId}));
  ASSERT_OK(upload->Add(keys_[0]));
  upload.reset();
  EXPECT_EQ(store().used_bytes(), bytes_before_);
  EXPECT_THAT(Find(), StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace cipherd::server
