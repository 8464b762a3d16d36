#include "client/client.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/call_status.h"
#include "client/channel.h"
#include "core/base/status_macros.h"
#include "proto/codec/context_codec.h"
#include "proto/codec/error_detail.h"
#include "proto/grpc_status/transport.h"

namespace cipherd::client {
namespace {

constexpr absl::Duration kControlTimeout = absl::Seconds(10);
constexpr absl::Duration kUploadTimeout = absl::Minutes(10);
// How often a connection that is not there yet is asked whether it is still wanted.
constexpr absl::Duration kConnectPoll = absl::Milliseconds(50);

// Whether it is connected by `deadline`. Cancelled.
absl::StatusOr<bool> AwaitConnected(grpc::Channel& channel, absl::Time deadline,
                                    const Cancellation* cancellation) {
  if (cancellation == nullptr) return channel.WaitForConnected(absl::ToChronoTime(deadline));
  while (true) {
    if (cancellation->is_cancelled()) return CancelledByCaller();
    const absl::Time now = absl::Now();
    const absl::Time until = std::min(deadline, now + kConnectPoll);
    if (channel.WaitForConnected(absl::ToChronoTime(until))) return true;
    if (now >= deadline) return false;
  }
}

}  // namespace

v1::ErrorReason ReasonOf(const absl::Status& status) {
  const std::optional<v1::ErrorDetail> detail = codec::GetErrorDetail(status);
  return detail.has_value() ? detail->reason() : v1::ERROR_REASON_UNSPECIFIED;
}

std::optional<absl::Duration> RetryDelayOf(const absl::Status& status) {
  return codec::GetRetryDelay(status);
}

Client::Client(const ClientOptions& options, std::unique_ptr<BearerToken> token,
               std::shared_ptr<grpc::Channel> channel)
    : options_(options),
      token_(std::move(token)),
      channel_(std::move(channel)),
      stub_(v1::EvaluationService::NewStub(channel_)),
      limits_(options.limits) {}

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(
    const ClientOptions& options, const std::shared_ptr<Cancellation>& cancellation) {
  CIPHERD_ASSIGN_OR_RETURN(std::shared_ptr<grpc::Channel> channel, MakeChannel(options));
  CIPHERD_ASSIGN_OR_RETURN(std::unique_ptr<BearerToken> token, BearerToken::Open(options));
  const absl::Time deadline = absl::Now() + options.connect_timeout;
  CIPHERD_ASSIGN_OR_RETURN(const bool is_connected,
                           AwaitConnected(*channel, deadline, cancellation.get()));
  if (!is_connected) {
    return absl::UnavailableError(absl::StrCat("no daemon answers at '", options.target,
                                               "' within ",
                                               absl::FormatDuration(options.connect_timeout)));
  }
  std::unique_ptr<Client> client(new Client(options, std::move(token), std::move(channel)));
  CIPHERD_ASSIGN_OR_RETURN(
      client->server_info_,
      client->GetServerInfo({.timeout = options.connect_timeout, .cancellation = cancellation}));
  client->limits_ = codec::DecodeLimits(client->server_info_.limits(), options.limits);
  CIPHERD_RETURN_IF_ERROR(client->limits_.Validate());
  return client;
}

std::unique_ptr<grpc::ClientContext> Client::MakeContext(const CallOptions& options,
                                                         absl::Duration default_timeout,
                                                         const std::string& routed_by) const {
  auto context = std::make_unique<grpc::ClientContext>();
  const absl::Duration timeout = options.timeout.value_or(default_timeout);
  if (timeout != absl::InfiniteDuration()) {
    context->set_deadline(absl::ToChronoTime(absl::Now() + timeout));
  }
  if (const std::string token = token_->Current(); !token.empty()) {
    context->AddMetadata("authorization", absl::StrCat("Bearer ", token));
  }
  if (!routed_by.empty()) context->AddMetadata(transport::kKeySetMetadata, routed_by);
  return context;
}

template <typename Call>
absl::Status Client::Run(const CallOptions& options, const Call& call,
                         const std::string& routed_by) const {
  const std::unique_ptr<grpc::ClientContext> context =
      MakeContext(options, kControlTimeout, routed_by);
  const Cancellation::Scope scope(options.cancellation, [&] { context->TryCancel(); });
  return StatusOfCall(call(context.get()), options.cancellation.get());
}

absl::StatusOr<v1::ServerInfo> Client::GetServerInfo(const CallOptions& options) const {
  v1::ServerInfo info;
  CIPHERD_RETURN_IF_ERROR(Run(options, [&](grpc::ClientContext* context) {
    return stub_->GetServerInfo(context, {}, &info);
  }));
  return info;
}

absl::StatusOr<std::vector<v1::ProgramSummary>> Client::ListPrograms(
    const CallOptions& options) const {
  v1::ListProgramsResponse response;
  CIPHERD_RETURN_IF_ERROR(Run(options, [&](grpc::ClientContext* context) {
    return stub_->ListPrograms(context, {}, &response);
  }));
  return std::vector<v1::ProgramSummary>(response.programs().begin(), response.programs().end());
}

absl::StatusOr<v1::GetProgramResponse> Client::GetProgramMessage(const std::string& name,
                                                                 uint32_t version,
                                                                 const CallOptions& options) const {
  v1::GetProgramRequest request;
  request.set_name(name);
  request.set_version(version);
  v1::GetProgramResponse response;
  CIPHERD_RETURN_IF_ERROR(Run(options, [&](grpc::ClientContext* context) {
    return stub_->GetProgram(context, request, &response);
  }));
  if (response.summary().name() != name) {
    return absl::InternalError(absl::StrCat("response.summary.name: expected '", name, "', got '",
                                            response.summary().name(), "'"));
  }
  if (version != 0 && response.summary().version() != version) {
    return absl::InternalError(absl::StrCat("response.summary.version: expected ", version,
                                            ", got ", response.summary().version()));
  }
  return response;
}

absl::StatusOr<ProgramPtr> Client::GetProgram(const std::string& name, uint32_t version,
                                              const CallOptions& options) const {
  CIPHERD_ASSIGN_OR_RETURN(const v1::GetProgramResponse response,
                           GetProgramMessage(name, version, options));
  return ProgramDescription::FromMessage(response, options_.security_policy, version);
}

absl::StatusOr<std::unique_ptr<KeyUpload>> Client::StartKeyUpload(
    const KeyUpload::Description& description, const CallOptions& options) const {
  const absl::Time deadline = absl::Now() + options.timeout.value_or(kUploadTimeout);
  return KeyUpload::Start(
      *stub_,
      [this, deadline](const std::string& routed_by) {
        return MakeContext({.timeout = std::max(deadline - absl::Now(), absl::ZeroDuration())},
                           kUploadTimeout, routed_by);
      },
      limits_, description, options.cancellation);
}

absl::Status Client::DropKeys(const std::string& key_set_id, const CallOptions& options) const {
  v1::DropKeysRequest request;
  CIPHERD_ASSIGN_OR_RETURN(*request.mutable_key_set_id(),
                           codec::EncodeDigest(key_set_id, "key_set_id"));
  v1::DropKeysResponse response;
  return Run(
      options,
      [&](grpc::ClientContext* context) { return stub_->DropKeys(context, request, &response); },
      key_set_id);
}

}  // namespace cipherd::client
