// A connection to a daemon: its calls, with everything that comes back checked.
//
//   ASSIGN_OR_RETURN(std::unique_ptr<Client> client, Client::Connect({.target =
//   "127.0.0.1:7480"})); ASSIGN_OR_RETURN(ProgramPtr program, client->GetProgram("fashion_mlp"));
//
// Applications that have vectors and want vectors use Session (session.h); this is the layer below,
// in values and keys. No function here takes a secret key.
//
// Errors carry the daemon's code and message, and a reason that a program can act on (ReasonOf):
// after UNKNOWN_KEY_SET upload the keys and try again, after OVERLOADED wait. What the daemon
// returns is checked before it is handed on; a fault there is Internal, naming the field.
//
// Thread-safe; calls block their thread, but for StartEvaluation, and run at once where threads
// call at once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "cipherd/v1/evaluation.grpc.pb.h"
#include "client/bearer_token.h"
#include "client/cancellation.h"
#include "client/client_options.h"
#include "client/evaluation_call.h"
#include "client/key_upload.h"
#include "client/program_description.h"
#include "core/value/value_tree.h"
#include "grpcpp/channel.h"
#include "proto/codec/wire_limits.h"

namespace cipherd::client {

// Why the daemon refused; ERROR_REASON_UNSPECIFIED where it did not say.
v1::ErrorReason ReasonOf(const absl::Status& status);

// How long to wait before the call is tried again; nothing where the daemon did not say. Many who
// wait should add some chance to it, so as not to come back at once.
std::optional<absl::Duration> RetryDelayOf(const absl::Status& status);

struct CallOptions {
  // Absent: 10 seconds, for evaluations a minute, for uploads of keys 10 minutes.
  std::optional<absl::Duration> timeout;
  // Ends a call that blocks early, with Cancelled. May be null.
  std::shared_ptr<Cancellation> cancellation = nullptr;
};

struct EvaluationRequest {
  ProgramPtr program;
  // 64 hexadecimal digits, from PutKeys. May be empty for a program that reads no keys.
  std::string key_set_id;
  // At most 64 printable characters; stands in the daemon's log. Empty: made at random.
  std::string request_id;
  // A tuple with one value an input, in the order of program->inputs.
  value::ValueTree inputs;
  // Asks the daemon to send outputs as it computes them. May be null.
  OutputCallback on_output;
};

class Client {
 public:
  // Connects and asks for the daemon's limits. Unavailable where nobody answers within
  // connect_timeout. `cancellation` may be null.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(
      const ClientOptions& options, const std::shared_ptr<Cancellation>& cancellation = nullptr);
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Of the time of Connect.
  const v1::ServerInfo& server_info() const { return server_info_; }
  absl::StatusOr<v1::ServerInfo> GetServerInfo(const CallOptions& options = {}) const;

  // Every version of every program.
  absl::StatusOr<std::vector<v1::ProgramSummary>> ListPrograms(
      const CallOptions& options = {}) const;
  // The newest version that is ready where none is named. Evaluations of what comes back go to
  // exactly the version that was named, or else to the one that is the newest by then: a program
  // whose versions differ in their inputs or keys is better named with one. NotFound.
  absl::StatusOr<ProgramPtr> GetProgram(const std::string& name, uint32_t version = 0,
                                        const CallOptions& options = {}) const;
  // The same before it is checked, for storing.
  absl::StatusOr<v1::GetProgramResponse> GetProgramMessage(const std::string& name,
                                                           uint32_t version = 0,
                                                           const CallOptions& options = {}) const;

  // Begins the upload of a key set (key_upload.h), which must not outlive the client.
  // ResourceExhausted at once where the daemon's limits do not admit it.
  absl::StatusOr<std::unique_ptr<KeyUpload>> StartKeyUpload(
      const KeyUpload::Description& description, const CallOptions& options = {}) const;
  // Deletes a key set. NotFound where the daemon has none of that id from this caller.
  absl::Status DropKeys(const std::string& key_set_id, const CallOptions& options = {}) const;

  // In one message each way where everything is small, as a stream otherwise.
  absl::StatusOr<EvaluationResult> Evaluate(const EvaluationRequest& request,
                                            const CallOptions& options = {}) const;
  // The same without waiting: `callback` gets what Evaluate returns (evaluation_call.h). After an
  // error there is no call, and no callback comes. Ended early by EvaluationCall::Cancel, not by
  // the options.
  absl::StatusOr<std::shared_ptr<EvaluationCall>> StartEvaluation(
      const EvaluationRequest& request, const CallOptions& options,
      EvaluationCallback callback) const;

 private:
  Client(const ClientOptions& options, std::unique_ptr<BearerToken> token,
         std::shared_ptr<grpc::Channel> channel);

  // `routed_by`: what a gateway routes by (transport::kKeySetMetadata). Empty: nothing.
  std::unique_ptr<grpc::ClientContext> MakeContext(const CallOptions& options,
                                                   absl::Duration default_timeout,
                                                   const std::string& routed_by = "") const;
  // Runs a call that blocks, `call(context)`, which returns a grpc::Status.
  template <typename Call>
  absl::Status Run(const CallOptions& options, const Call& call,
                   const std::string& routed_by = "") const;

  const ClientOptions options_;
  const std::unique_ptr<BearerToken> token_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::EvaluationService::Stub> stub_;
  v1::ServerInfo server_info_;
  // The smaller of both sides' limits.
  codec::WireLimits limits_;
};

}  // namespace cipherd::client
