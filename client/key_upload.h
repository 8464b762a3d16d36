// The upload of a key set, one key at a time: a key can be sent while the next one is made.
//
//   ASSIGN_OR_RETURN(std::unique_ptr<KeyUpload> upload, client->StartKeyUpload(
//       {.context = program->known_context, .key_count = 36, .total_bytes = program->key_bytes}));
//   for (...) RETURN_IF_ERROR(upload->Add(key));
//   ASSIGN_OR_RETURN(std::string key_set_id, upload->Finish());
//
// The set is the daemon's once Finish has returned; an upload that is dropped or fails before
// leaves nothing. Where the connection breaks or the daemon goes away for a while, the upload asks
// what has come and goes on from there; the keys that may be under way are kept for that, about
// kUnconfirmedBytes of them. Used by one thread at a time. Errors as in client.h.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cipherd/v1/evaluation.grpc.pb.h"
#include "client/cancellation.h"
#include "core/value/exact_value.h"
#include "proto/codec/key_set_id.h"
#include "proto/codec/known_context.h"
#include "proto/codec/payload_source.h"
#include "proto/codec/wire_limits.h"

namespace cipherd::client {

class KeyUpload {
 public:
  // More than what the windows of a connection and the buffers on the way hold.
  static constexpr uint64_t kUnconfirmedBytes = uint64_t{64} << 20;

  struct Description {
    codec::KnownContextPtr context;
    int key_count = 0;
    uint64_t total_bytes = 0;
    // Called after each chunk with payload bytes. May be null.
    std::function<void(uint64_t sent_bytes, uint64_t total_bytes)> progress;
    // Names the upload, 16 to 64 bytes. With that of an earlier upload of the same keys in the same
    // order, which may have been another process's, what has come of it is not sent again. Empty:
    // chosen at random.
    std::string upload_id;
    // The set's id, where the caller knows it already: a gateway then sends the upload where the
    // set's evaluations go. Empty: where the upload's id sends it, and the replica of the
    // evaluations reads the set from the key directory that replicas share, once.
    std::string key_set_id;
    // For how long breaks may keep the upload from coming any further.
    absl::Duration resume_timeout = absl::Seconds(30);
  };

  // Makes the context of a call, with deadline, credentials and what it is routed by; the deadline
  // is that of the upload.
  using ContextFactory =
      std::function<std::unique_ptr<grpc::ClientContext>(const std::string& routed_by)>;

  // Sends the header; with an upload_id of the caller's, asks first what has come. `stub` must
  // outlive the upload. `cancellation` ends it early, in any of its functions; may be null.
  static absl::StatusOr<std::unique_ptr<KeyUpload>> Start(
      v1::EvaluationService::Stub& stub, ContextFactory make_context,
      const codec::WireLimits& limits, const Description& description,
      std::shared_ptr<Cancellation> cancellation = nullptr);
  // Cancels what is not finished.
  ~KeyUpload();
  KeyUpload(const KeyUpload&) = delete;
  KeyUpload& operator=(const KeyUpload&) = delete;

  // Sends one relinearization, rotation or conjugation key; anything else is InvalidArgument, and a
  // secret key has no encoding.
  absl::Status Add(const value::ExactValue& key);

  // The id of the set, 64 hexadecimal digits. Internal where the daemon's id is not that of the
  // keys sent.
  absl::StatusOr<std::string> Finish();

  // Bytes of all messages so far, those sent again included.
  uint64_t sent_bytes() const { return sent_bytes_; }
  // How often the upload went on after a break.
  int resume_count() const { return resume_count_; }
  // Whether the daemon had the set already; known after Finish.
  bool existed() const { return response_.existed(); }

 private:
  // A key that the daemon may not have yet.
  struct Pending {
    v1::PutKeysRequest description;
    codec::PayloadSource payload;
    // Payload bytes and number of the keys before it.
    uint64_t start = 0;
    uint32_t index = 0;
  };
  // How far a stream has come, in payload bytes and keys described.
  struct Position {
    uint64_t bytes = 0;
    uint32_t described_keys = 0;
  };

  KeyUpload(v1::EvaluationService::Stub& stub, ContextFactory make_context,
            const codec::WireLimits& limits, const Description& description,
            std::shared_ptr<Cancellation> cancellation);

  // Opens a stream that goes on from `position_`.
  absl::Status Open();
  // Sends what is pending, goes on after breaks.
  absl::Status Pump();
  // Once, on the stream that is open.
  absl::Status Send();
  absl::Status SendKey(Pending& key);
  absl::Status Write(const v1::PutKeysRequest& message);
  // After `broken`: asks for the position until the daemon answers. Its error, or `broken` where
  // the upload cannot go on.
  absl::Status Recover(const absl::Status& broken);
  absl::Status FindPosition();
  absl::Status FinishCall();
  void ForgetConfirmed();

  v1::EvaluationService::Stub& stub_;
  const ContextFactory make_context_;
  const codec::WireLimits limits_;
  const Description description_;
  const std::shared_ptr<Cancellation> cancellation_;
  std::string upload_id_;
  // The same for all calls of the upload: what has come is where it went.
  std::string routed_by_;

  std::unique_ptr<grpc::ClientContext> context_;
  // Cancels `context_`.
  std::optional<Cancellation::Scope> cancel_context_;
  v1::PutKeysResponse response_;
  // Null while no call is open.
  std::unique_ptr<grpc::ClientWriter<v1::PutKeysRequest>> writer_;
  Position position_;
  std::deque<Pending> pending_;
  codec::KeySetIdBuilder id_;
  uint32_t key_count_ = 0;
  uint64_t payload_bytes_ = 0;
  uint64_t sent_bytes_ = 0;
  int resume_count_ = 0;
  // Where the breaks began that it has not come beyond yet.
  uint64_t furthest_bytes_ = 0;
  absl::Time broken_since_ = absl::InfinitePast();
  // The daemon said that the set is stored.
  bool is_stored_ = false;
  bool is_finished_ = false;
  absl::Status failure_;
};

}  // namespace cipherd::client
