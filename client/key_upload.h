// The upload of a key set, one key at a time: a key can be sent while the next one is made.
//
//   ASSIGN_OR_RETURN(std::unique_ptr<KeyUpload> upload, client->StartKeyUpload(
//       {.context = program->known_context, .key_count = 36, .total_bytes = program->key_bytes}));
//   for (...) RETURN_IF_ERROR(upload->Add(key));
//   ASSIGN_OR_RETURN(std::string key_set_id, upload->Finish());
//
// The set is the daemon's once Finish has returned; an upload that is dropped or fails before
// leaves nothing. Used by one thread at a time. Errors as in client.h.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cipherd/v1/evaluation.grpc.pb.h"
#include "core/value/exact_value.h"
#include "proto/codec/key_set_id.h"
#include "proto/codec/known_context.h"
#include "proto/codec/wire_limits.h"

namespace cipherd::client {

class KeyUpload {
 public:
  struct Description {
    codec::KnownContextPtr context;
    int key_count = 0;
    uint64_t total_bytes = 0;
    // Called after each chunk with payload bytes. May be null.
    std::function<void(uint64_t sent_bytes, uint64_t total_bytes)> progress;
  };

  // Sends the header. `stub` must outlive the upload.
  static absl::StatusOr<std::unique_ptr<KeyUpload>> Start(
      v1::EvaluationService::Stub& stub, std::unique_ptr<grpc::ClientContext> context,
      const codec::WireLimits& limits, const Description& description);
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

  // Bytes of all messages so far.
  uint64_t sent_bytes() const { return sent_bytes_; }
  // Whether the daemon had the set already; known after Finish.
  bool existed() const { return response_.existed(); }

 private:
  KeyUpload(std::unique_ptr<grpc::ClientContext> context, const codec::WireLimits& limits,
            const Description& description);
  absl::Status Write(const v1::PutKeysRequest& message);
  absl::Status FinishCall();

  const std::unique_ptr<grpc::ClientContext> context_;
  const codec::WireLimits limits_;
  const Description description_;
  v1::PutKeysResponse response_;
  std::unique_ptr<grpc::ClientWriter<v1::PutKeysRequest>> writer_;
  codec::KeySetIdBuilder id_;
  int key_count_ = 0;
  uint64_t payload_bytes_ = 0;
  uint64_t sent_bytes_ = 0;
  bool is_finished_ = false;
};

}  // namespace cipherd::client
