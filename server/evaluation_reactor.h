// What calls have in common that are one evaluation, received as a stream: its states, and the way
// from the last message to the result.
//
//   kReceiving --half-close--> kRunning --result--> kReplying --> kFinished
//       |                         |                     |             ^
//       +------- any error -------+---------------------+-------------+
//
// kFinished is StreamReactor's. A call that sends early outputs writes in kRunning already.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/evaluation.h"
#include "server/stream_reactor.h"

namespace cipherd::server {

class EvaluationReactor
    : public StreamReactor<grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>> {
 public:
  void OnCancel() final { evaluation_.Cancel(); }

 protected:
  enum class State : uint8_t { kReceiving, kRunning, kReplying };

  // `method` is a literal.
  EvaluationReactor(std::string_view method, const ServiceEnvironment& environment,
                    grpc::CallbackServerContext& context)
      : StreamReactor(method, environment, context, environment.calls),
        evaluation_(environment, rpc_) {}

  // What a call ends with that has said nothing.
  virtual absl::Status NothingCame() const = 0;
  // The evaluation has come to its end with OK: the call goes on to reply, or ends.
  virtual void Reply() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) = 0;
  // It has come to an error: ends the call with it.
  virtual void Fail(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    FinishWith(status);
  }
  // Who is to be told of early outputs, or null.
  virtual engine::Request::OutputListener OutputListener() { return nullptr; }

  State state() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return state_; }

  Evaluation evaluation_;

 private:
  void OnHalfClose() final ABSL_LOCKS_EXCLUDED(mu_);
  void Release(const absl::Status& status) final ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    evaluation_.End(status);
  }

  // The evaluation has come to `status`.
  void OnResult(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_);

  State state_ ABSL_GUARDED_BY(mu_) = State::kReceiving;
};

}  // namespace cipherd::server
