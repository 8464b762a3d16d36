// A client that sends what must be refused, one kind after the other.
//
//   ASSERT_OK_AND_ASSIGN(auto hostile, HostileClient::Create(options, kSmallProgram, "other"));
//   ASSERT_OK(hostile->SendNext());
//
// Used by one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cipherd/v1/evaluation.grpc.pb.h"
#include "client/client.h"
#include "client/session.h"

namespace cipherd::testing {

class HostileClient {
 public:
  // Uploads keys for `program`. `other_program` is one over another context.
  static absl::StatusOr<std::unique_ptr<HostileClient>> Create(const client::ClientOptions& options,
                                                               const std::string& program,
                                                               const std::string& other_program);

  // Sends the next kind of bad request. Not OK where the daemon's answer is not the refusal that
  // the kind calls for, or that of overload.
  absl::Status SendNext() { return Send(static_cast<int>(sent_count_) % kKindCount); }
  // Sends one of a kind, below kKindCount.
  absl::Status Send(int kind);
  static constexpr int kKindCount = 8;
  // Gives the keys back.
  absl::Status Release() { return session_->DropKeys(); }

  uint64_t sent_count() const { return sent_count_; }

 private:
  HostileClient() = default;
  absl::Status SendUnknownKeySet();
  absl::Status SendUnknownProgram();
  absl::Status SendValueOfAnotherContext();
  absl::Status SendResidueAboveItsPrime();
  absl::Status SendShortPayload();
  absl::Status SendStreamWithoutHeader();
  // Up to 3 ms, so that the daemon has got now nothing, now something of what is left.
  void WaitAMoment();
  absl::Status LeaveInTheMiddleOfAStream();
  absl::Status LeaveInTheMiddleOfAnUpload();
  absl::Status Evaluate(client::EvaluationRequest request, absl::StatusCode expected);

  std::unique_ptr<client::Client> client_;
  std::unique_ptr<client::Session> session_;
  std::unique_ptr<client::Session> other_session_;
  std::unique_ptr<v1::EvaluationService::Stub> stub_;
  client::EvaluationRequest good_;
  // The same as messages.
  v1::EvaluateRequest good_message_;
  uint64_t sent_count_ = 0;
};

}  // namespace cipherd::testing
