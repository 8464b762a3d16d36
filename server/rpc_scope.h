// What every RPC does besides its work, in one place: timing, metrics, status mapping, a log line
// for failures.
//
//   RpcScope rpc("GetProgram", observer);
//   reactor->Finish(rpc.Close(status));
//
// A failure carries an ErrorDetail: the codec's own, or one made of the engine's FailureReason.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "grpcpp/support/status.h"
#include "server/metrics.h"

namespace cipherd::server {

class RpcScope {
 public:
  // `method` is a literal. Metrics and clock outlive the scope.
  RpcScope(std::string_view method, Metrics& metrics, const base::Clock& clock)
      : method_(method), metrics_(metrics), clock_(clock), start_(clock.Now()) {}

  // The RPC ends with `status`. Once.
  grpc::Status Close(const absl::Status& status);

 private:
  const std::string_view method_;
  Metrics& metrics_;
  const base::Clock& clock_;
  const absl::Time start_;
};

// `status` as clients see it: with an ErrorDetail, and nothing of the engine's own.
absl::Status WithDetailForClients(absl::Status status);

}  // namespace cipherd::server
