// One evaluation between the wire and the engine: what Evaluate, EvaluateStream and ModelInfer
// share.
//
//   Evaluation evaluation(service, rpc);
//   status = evaluation.Begin(header, caller, payload_bytes);     // counted, admitted, memory
//   leased status = evaluation.Write(chunk);                             // into pinned memory
//   evaluation.Submit([&](const absl::Status& status) { ... });   // once all bytes have come
//   status = evaluation.EncodeResult(response.mutable_outputs(), response.mutable_stage_times());
//   ... evaluation.result().TakeInto(...) ...
//   evaluation.End(absl::OkStatus());
//
// Order of checks: program and version, then all that the codec checks of the announced inputs,
// then the key set, and only then memory. After an error of any call, End with it. Threading: one
// thread at a time, but for Cancel.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "cipherd/v1/evaluation.pb.h"
#include "proto/codec/payload_reader.h"
#include "proto/codec/payload_source.h"
#include "proto/codec/wire_limits.h"
#include "server/call_gate.h"
#include "server/caller.h"
#include "server/engine/engine.h"
#include "server/metrics.h"
#include "server/program_registry.h"
#include "server/rpc_scope.h"
#include "server/stall_watch.h"
#include "server/upload_table.h"

namespace cipherd::server {

// What the service's calls work with. All outlive them.
struct ServiceEnvironment {
  engine::Engine& engine;
  const ProgramRegistry& programs;
  Metrics& metrics;
  // For uploads and evaluations, and for calls that only ask.
  CallGate& calls;
  CallGate& lookups;
  StallWatch& stalls;
  UploadTable& uploads;
  const Callers& callers;
  const codec::WireLimits& limits;
  bool insecure_contexts_allowed = false;
};

class Evaluation {
 public:
  // What is known of the request goes into the log line of `rpc`. Both outlive this.
  Evaluation(const ServiceEnvironment& environment, RpcScope& rpc)
      : environment_(environment), rpc_(rpc) {}
  // Must have ended, or never begun.
  ~Evaluation();
  Evaluation(const Evaluation&) = delete;
  Evaluation& operator=(const Evaluation&) = delete;

  // The inputs must be of the version that will serve the request. `actual_payload_bytes` is given
  // where the payload is there already.
  absl::Status Begin(const v1::EvaluationHeader& header, const Caller& caller,
                     std::optional<uint64_t> actual_payload_bytes);
  // Describes the inputs for a version that may serve the request, or says why they are none. What
  // it gives stays until it is called again, for another version.
  using InputsFor =
      absl::FunctionRef<absl::StatusOr<const v1::ValueTree*>(const RegisteredProgram& program)>;
  // The same where that description is not in the header.
  absl::Status Begin(const v1::EvaluationHeader& header, InputsFor inputs_for, const Caller& caller,
                     std::optional<uint64_t> actual_payload_bytes);
  bool has_begun() const { return reader_.has_value(); }

  absl::Status Write(std::string_view chunk);

  // Requires every byte; else `continuation` gets why not. It is called exactly once, maybe before
  // this returns, and may destroy this object. `listener` may be null.
  void Submit(engine::Request::Continuation continuation,
              engine::Request::OutputListener listener = nullptr);

  // Describes the outputs and opens the source of their payload: after the continuation got OK, or
  // in a call of the listener, whose first `count` outputs are the first OutputBytes(count) bytes.
  absl::Status EncodeOutputs(v1::ValueTree* outputs);
  codec::PayloadSource& result() { return *result_; }
  bool has_result() const { return result_.has_value(); }
  uint64_t OutputBytes(size_t count) const;
  // After the continuation got OK.
  void EncodeTimes(v1::StageTimes* times);
  // Both.
  absl::Status EncodeResult(v1::ValueTree* outputs, v1::StageTimes* times);
  // The version that serves the request; once begun.
  const RegisteredProgram& program() const { return *program_; }
  // Payload of the result; once begun.
  uint64_t output_bytes() const {
    return static_cast<uint64_t>(request_->program().info().output_bytes);
  }

  // Closes the request, gives its memory back, and records its times where it has succeeded.
  void End(const absl::Status& status);

  // The caller has gone. Any thread, any time.
  void Cancel() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const engine::RequestPtr& request() const { return request_; }

  const ServiceEnvironment& environment_;
  RpcScope& rpc_;
  absl::Time began_at_;
  absl::Time result_at_;
  RegisteredProgramPtr program_;
  std::optional<codec::PayloadReader> reader_;
  std::optional<codec::PayloadSource> result_;
  // Where each output ends in the payload.
  std::vector<uint64_t> output_ends_;
  // Written once, under the lock, by the thread that reads it without.
  engine::RequestPtr request_;

  absl::Mutex mu_;
  bool is_cancelled_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace cipherd::server
