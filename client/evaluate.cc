// Client's evaluations: a request out, a checked result in.
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/notification.h"
#include "client/client.h"
#include "core/base/status_macros.h"
#include "proto/codec/context_codec.h"
#include "proto/codec/tree_encoder.h"

namespace cipherd::client {
namespace {

constexpr absl::Duration kEvaluationTimeout = absl::Minutes(1);

std::string RandomRequestId() {
  std::random_device random;
  return absl::StrFormat("%08x%08x", random(), random());
}

}  // namespace

absl::StatusOr<std::shared_ptr<EvaluationCall>> Client::StartEvaluation(
    const EvaluationRequest& request, const CallOptions& options,
    EvaluationCallback callback) const {
  const ProgramDescription& program = *request.program;
  v1::EvaluationHeader header;
  header.set_program(program.name);
  header.set_program_version(program.requested_version);
  // A program that reads no keys needs none to be named.
  if (!request.key_set_id.empty() || program.required_keys.size() > 0) {
    CIPHERD_ASSIGN_OR_RETURN(*header.mutable_key_set_id(),
                             codec::EncodeDigest(request.key_set_id, "key_set_id"));
  }
  header.set_request_id(request.request_id.empty() ? RandomRequestId() : request.request_id);
  CIPHERD_ASSIGN_OR_RETURN(codec::PayloadSource payload,
                           codec::EncodeTree(request.inputs, "inputs", header.mutable_inputs()));
  if (payload.total_bytes() > limits_.max_request_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("inputs: expected at most ",
                                                     limits_.max_request_bytes, " bytes, got ",
                                                     payload.total_bytes()));
  }
  const bool fits_one_message = payload.total_bytes() <= limits_.max_unary_bytes &&
                                program.output_bytes <= limits_.max_unary_bytes;
  auto context = MakeContext(options, kEvaluationTimeout, request.key_set_id);
  if (fits_one_message && !request.on_output) {
    return StartUnaryEvaluation(*stub_, request.program, limits_, std::move(header),
                                std::move(payload), std::move(context), std::move(callback));
  }
  header.set_early_outputs(request.on_output != nullptr);
  return StartStreamEvaluation(*stub_, request.program, limits_, std::move(header),
                               std::move(payload), std::move(context), request.on_output,
                               std::move(callback));
}

absl::StatusOr<EvaluationResult> Client::Evaluate(const EvaluationRequest& request,
                                                  const CallOptions& options) const {
  absl::StatusOr<EvaluationResult> result;
  absl::Notification has_ended;
  CIPHERD_ASSIGN_OR_RETURN(
      const std::shared_ptr<EvaluationCall> call,
      StartEvaluation(request, options, [&](absl::StatusOr<EvaluationResult> outcome) {
        result = std::move(outcome);
        has_ended.Notify();
      }));
  const Cancellation::Scope scope(options.cancellation, [&] { call->Cancel(); });
  has_ended.WaitForNotification();
  return result;
}

}  // namespace cipherd::client
