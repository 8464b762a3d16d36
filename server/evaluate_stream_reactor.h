// EvaluateStream: one evaluation of any size, header and chunks each way.
//
// The client's half-close says that its payload is complete. At most one message each way is in
// memory besides the pinned trees, and a client that sends or reads none for too long is let go.
// Where it asked for early outputs, they are written from the pinned trees while the evaluation
// runs; whatever then ends the call before the evaluation waits for that.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "cipherd/v1/evaluation.pb.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "server/evaluation_reactor.h"

namespace cipherd::server {

class EvaluateStreamReactor final : public EvaluationReactor {
 public:
  EvaluateStreamReactor(const ServiceEnvironment& environment,
                        grpc::CallbackServerContext& context);

  void OnWriteDone(bool ok) override ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::Status Receive(grpc::ByteBuffer& bytes) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnStall() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status NothingCame() const override;
  engine::Request::OutputListener OutputListener() override;
  void Reply() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Fail(const absl::Status& status) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // The first `count` outputs are there, and the evaluation goes on.
  void OnEarlyOutputs(size_t count) ABSL_LOCKS_EXCLUDED(mu_);
  // Puts the outputs' description into `next_`, unless that has been done.
  absl::Status Describe() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Writes what is next, of the payload at most so many bytes, unless a write is under way or there
  // is nothing yet; ends the call after the last.
  void Advance(uint64_t max_chunk_bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Whether there is more in `next_`, or was put there.
  bool PrepareNext(uint64_t max_chunk_bytes) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Write() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // gRPC reads it while a write is under way.
  grpc::ByteBuffer write_bytes_;
  bool wants_early_outputs_ ABSL_GUARDED_BY(mu_) = false;
  // What is to be written next, where it is set.
  v1::EvaluateStreamResponse next_ ABSL_GUARDED_BY(mu_);
  // Bytes of the result that have been computed.
  uint64_t ready_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  bool has_written_times_ ABSL_GUARDED_BY(mu_) = false;
  bool is_writing_ ABSL_GUARDED_BY(mu_) = false;
  bool has_stalled_ ABSL_GUARDED_BY(mu_) = false;
  // What the call will end with, while the evaluation or a write goes on; else OK.
  absl::Status failure_ ABSL_GUARDED_BY(mu_);
  // The evaluation will say no more, and there is no result to send.
  bool has_failed_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace cipherd::server
