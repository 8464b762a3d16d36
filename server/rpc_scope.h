// What every RPC does besides its work, in one place: timing, metrics, status mapping, and one log
// line.
//
//   RpcScope rpc("GetProgram", context, metrics, clock);
//   reactor->Finish(rpc.Close(status));
//
// The line names the caller's trace, where the call came with one (trace_context.h). That of an
// evaluation, or of a failure, is information; that of any other success is for
// debugging. A failure carries an ErrorDetail: the codec's own, or one made of the engine's
// FailureReason; one that is overloaded says when to try again (RetryInfo).
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/status.h"
#include "server/logging.h"
#include "server/metrics.h"

namespace cipherd::server {

class RpcScope {
 public:
  // `method` is a literal. Metrics and clock outlive the scope; `context` need not.
  RpcScope(std::string_view method, const grpc::ServerContextBase& context, Metrics& metrics,
           const base::Clock& clock);

  // For what is worth knowing of this RPC beside method, code and time. Used by one thread at a
  // time.
  LogEvent& log() { return log_; }
  // The line is information even where the RPC succeeds.
  void LogAlways() { logs_always_ = true; }

  // The RPC ends with `status`. Once.
  grpc::Status Close(const absl::Status& status);

 private:
  const std::string_view method_;
  Metrics& metrics_;
  const base::Clock& clock_;
  const absl::Time start_;
  LogEvent log_{"rpc"};
  bool logs_always_ = false;
};

// `status` as clients see it: with an ErrorDetail, and nothing of the engine's own.
absl::Status WithDetailForClients(absl::Status status);

}  // namespace cipherd::server
