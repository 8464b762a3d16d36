// Calls that ask for something and are told: one short message each way.
//
//   Tell("GetProgram", [this](grpc::CallbackServerContext* context) {
//     return LookUpAtOnce<v1::GetProgramRequest, v1::GetProgramResponse>(
//         environment_, *context, "GetProgram",
//         [this](const Caller& caller, const auto& which, auto& program) -> absl::Status { … });
//   });
//
// They have places of their own (ServiceEnvironment::lookups), so that a daemon that is full of
// evaluations still says what it is.
#pragma once

#include <functional>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "core/base/status_macros.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/evaluation.h"
#include "server/stream_reactor.h"
#include "server/wire_message.h"

namespace cipherd::server {

class LookupReactor final
    : public StreamReactor<grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>> {
 public:
  // The status, and with OK the message. Once, on any thread.
  using Reply = std::function<void(const absl::Status& status, grpc::ByteBuffer message)>;
  // Looks at the request's message and replies, now or later. Does not block.
  using Answer = std::function<void(const Caller& caller, grpc::ByteBuffer& message, Reply reply)>;

  // `method` is a literal.
  LookupReactor(std::string_view method, const ServiceEnvironment& environment,
                grpc::CallbackServerContext& context, Answer answer)
      : StreamReactor(method, environment, context, environment.lookups),
        answer_(std::move(answer)) {
    Start();
  }

 private:
  absl::Status Receive(grpc::ByteBuffer& bytes) override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void OnHalfClose() override ABSL_LOCKS_EXCLUDED(mu_);
  void OnStall() override ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Release(const absl::Status&) override {}

  void End(const absl::Status& status, grpc::ByteBuffer message) ABSL_LOCKS_EXCLUDED(mu_);

  const Answer answer_;
  bool has_message_ ABSL_GUARDED_BY(mu_) = false;
  grpc::ByteBuffer message_;
  // gRPC reads it until the call is done.
  grpc::ByteBuffer response_;
};

// One whose work(const Caller&, const Request&, Response&) gives a status and does not block.
template <typename Request, typename Response, typename Work>
LookupReactor* LookUpAtOnce(const ServiceEnvironment& environment,
                            grpc::CallbackServerContext& context, std::string_view method,
                            Work work) {
  return new LookupReactor(method, environment, context,
                           [work = std::move(work)](const Caller& caller, grpc::ByteBuffer& message,
                                                    const LookupReactor::Reply& reply) {
                             grpc::ByteBuffer response_bytes;
                             const auto answer = [&]() -> absl::Status {
                               Request request;
                               CIPHERD_RETURN_IF_ERROR(ParseMessage(message, request));
                               Response response;
                               CIPHERD_RETURN_IF_ERROR(work(caller, request, response));
                               return SerializeMessage(response, response_bytes);
                             };
                             const absl::Status status = answer();
                             reply(status, std::move(response_bytes));
                           });
}

}  // namespace cipherd::server
