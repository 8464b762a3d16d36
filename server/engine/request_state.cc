#include "server/engine/request_state.h"

namespace cipherd::engine {

bool CanAdvance(RequestState from, RequestState to) {
  using enum RequestState;
  if (IsTerminal(from)) return false;
  switch (to) {
    case kReceiving:
      return false;
    case kQueued:
      return from == kReceiving;
    case kExecuting:
      return from == kQueued;
    case kReplying:
      return from == kExecuting;
    case kSucceeded:
      return from == kReplying;
    case kFailed:
    case kCancelled:
      return true;
    case kRejected:
      return from == kReceiving || from == kQueued;
  }
  return false;
}

RequestState TerminalStateFor(RequestState from, const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return RequestState::kSucceeded;
    case absl::StatusCode::kCancelled:
      return RequestState::kCancelled;
    case absl::StatusCode::kDeadlineExceeded:
      return RequestState::kFailed;
    default:
      return CanAdvance(from, RequestState::kRejected) ? RequestState::kRejected
                                                       : RequestState::kFailed;
  }
}

std::string_view ToString(RequestState state) {
  switch (state) {
    case RequestState::kReceiving:
      return "receiving";
    case RequestState::kQueued:
      return "queued";
    case RequestState::kExecuting:
      return "executing";
    case RequestState::kReplying:
      return "replying";
    case RequestState::kSucceeded:
      return "succeeded";
    case RequestState::kFailed:
      return "failed";
    case RequestState::kCancelled:
      return "cancelled";
    case RequestState::kRejected:
      return "rejected";
  }
  return "unknown";
}

}  // namespace cipherd::engine
