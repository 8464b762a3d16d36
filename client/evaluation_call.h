// One evaluation under way, without a thread that waits for it (Client::StartEvaluation).
//
//   ASSIGN_OR_RETURN(std::shared_ptr<EvaluationCall> call,
//                    client->StartEvaluation(request, {}, [](auto result) { ... }));
//   call->Cancel();
//
// The call lives until it has ended, whoever holds it. Cancel is thread-safe.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cipherd/v1/evaluation.grpc.pb.h"
#include "client/program_description.h"
#include "core/value/value_tree.h"
#include "grpcpp/client_context.h"
#include "proto/codec/payload_source.h"
#include "proto/codec/wire_limits.h"

namespace cipherd::client {

struct EvaluationResult {
  // A tuple with one value an output.
  value::ValueTree outputs;
  v1::StageTimes stage_times;
  std::string request_id;
  // Bytes of all messages.
  uint64_t sent_bytes = 0;
  uint64_t received_bytes = 0;
};

// Called once, on a thread of gRPC's: it must not block. What came is checked by then. It may let
// go of the client, and so of the channel (callback_threads.h).
using EvaluationCallback = std::function<void(absl::StatusOr<EvaluationResult> result)>;

// Called for each output, in their order, as soon as it has come and been checked: before the
// callback, on a thread of gRPC's: it must not block. An error may follow, which leaves them good.
using OutputCallback = std::function<void(size_t index, value::ValueTree output)>;

class EvaluationCall {
 public:
  EvaluationCall(ProgramPtr program, const codec::WireLimits& limits, std::string request_id,
                 std::unique_ptr<grpc::ClientContext> context, EvaluationCallback callback);
  virtual ~EvaluationCall() = default;
  EvaluationCall(const EvaluationCall&) = delete;
  EvaluationCall& operator=(const EvaluationCall&) = delete;

  // Ends the call early with Cancelled, unless it has ended: the callback comes all the same.
  void Cancel();

 protected:
  // The status that the caller sees: Cancelled only where the caller did it.
  absl::Status StatusOfEnd(const grpc::Status& status) const;

  grpc::ClientContext* context() { return context_.get(); }
  // Asks gRPC to end the call, unless it has ended.
  void TryCancel() { context_->TryCancel(); }
  // Hands `result_` to the callback where `status` is OK, else `status`. The last of the call.
  void Report(const absl::Status& status);

  const ProgramPtr program_;
  const codec::WireLimits limits_;
  EvaluationResult result_;

 private:
  const std::unique_ptr<grpc::ClientContext> context_;
  const EvaluationCallback callback_;
  std::atomic<bool> is_cancelled_{false};
};

// In one message each way. `header` has everything but the payload.
std::shared_ptr<EvaluationCall> StartUnaryEvaluation(
    v1::EvaluationService::Stub& stub, ProgramPtr program, const codec::WireLimits& limits,
    v1::EvaluationHeader header, codec::PayloadSource payload,
    std::unique_ptr<grpc::ClientContext> context, EvaluationCallback callback);

// As a stream of chunks; one message each way is in memory at a time. Where `header` asks for early
// outputs, `on_output` is told of them.
std::shared_ptr<EvaluationCall> StartStreamEvaluation(
    v1::EvaluationService::Stub& stub, ProgramPtr program, const codec::WireLimits& limits,
    v1::EvaluationHeader header, codec::PayloadSource payload,
    std::unique_ptr<grpc::ClientContext> context, OutputCallback on_output,
    EvaluationCallback callback);

}  // namespace cipherd::client
