// PutKeys: receives one key set into pinned memory that was charged before, all or nothing.
//
//   kReceiving --half-close--> kCommitting --stored--> kFinished
//       |                           |                      ^
//       +--- error, break, stall ---+----------------------+
//
// A break, an early end or a stall parks what has come where the client named the upload
// (upload_table.h), and gives it up otherwise.
#pragma once

#include <optional>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "cipherd/v1/evaluation.pb.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/caller.h"
#include "server/engine/key_store.h"
#include "server/evaluation.h"
#include "server/stream_reactor.h"
#include "server/upload_table.h"

namespace cipherd::server {

class PutKeysReactor final : public StreamReactor<grpc::ServerReadReactor<grpc::ByteBuffer>> {
 public:
  PutKeysReactor(const ServiceEnvironment& environment, grpc::CallbackServerContext& context,
                 grpc::ByteBuffer& response);

 private:
  enum class State : uint8_t { kReceiving, kCommitting };

  absl::Status Receive(grpc::ByteBuffer& bytes) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnHalfClose() override ABSL_LOCKS_EXCLUDED(mu_);
  void OnStall() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Release(const absl::Status& status) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  absl::Status BeginSet(const v1::KeySetHeader& header) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status ReserveMemory(const v1::KeySetHeader& header) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // What came and its memory, for the key store.
  struct Complete {
    engine::KeyUpload memory;
    engine::KeyStore::NewSet set;
  };
  absl::StatusOr<Complete> TakeComplete() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnStored(const absl::StatusOr<engine::KeyStore::Committed>& stored) ABSL_LOCKS_EXCLUDED(mu_);
  // What a client is told whose stream ended before everything had come.
  absl::Status EarlyEnd() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The stream broke: parks what may be gone on with.
  void FinishBroken(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  grpc::ByteBuffer& response_;
  State state_ ABSL_GUARDED_BY(mu_) = State::kReceiving;
  // From the header on.
  std::optional<ReceivedKeys> received_ ABSL_GUARDED_BY(mu_);
  // Where the client named the upload, until it was parked or ended.
  std::optional<UploadTable::Key> upload_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cipherd::server
