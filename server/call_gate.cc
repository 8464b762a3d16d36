#include "server/call_gate.h"

#include "absl/strings/str_cat.h"
#include "server/engine/failure_reason.h"

namespace cipherd::server {

absl::Status TooManyCalls(const CallGate& gate) {
  return engine::WithReason(absl::ResourceExhaustedError(
                                absl::StrCat("the daemon has ", gate.limit(), " calls under way")),
                            engine::FailureReason::kOverloaded);
}

}  // namespace cipherd::server
