#include "server/put_keys_reactor.h"

#include <string>
#include <utility>

#include "core/base/status_macros.h"
#include "proto/codec/context_codec.h"
#include "proto/codec/error_detail.h"
#include "server/engine/failure_reason.h"
#include "spdlog/spdlog.h"

namespace cipherd::server {

PutKeysReactor::PutKeysReactor(const ServiceEnvironment& environment,
                               grpc::CallbackServerContext& context, v1::PutKeysResponse& response)
    : environment_(environment),
      context_(context),
      response_(response),
      rpc_("PutKeys", environment.metrics, environment.engine.clock()) {
  StartRead(&request_);
}

void PutKeysReactor::OnReadDone(bool ok) {
  absl::Status status;
  if (ok) {
    status = Receive(request_);
    // What a header brought along, unknown fields included, must not last as long as the stream.
    request_.Clear();
    if (status.ok()) {
      StartRead(&request_);
      return;
    }
  } else {
    status = context_.IsCancelled() ? absl::CancelledError("the client left during the upload")
                                    : Commit();
  }
  // Memory and charge go back before the client hears of the failure.
  reader_.reset();
  upload_.reset();
  Finish(rpc_.Close(status));
}

absl::Status PutKeysReactor::Receive(const v1::PutKeysRequest& message) {
  if (message.has_header()) {
    if (reader_.has_value()) {
      return codec::Refuse(v1::ERROR_REASON_PROTOCOL, "header", "expected one header, got another");
    }
    return BeginSet(message.header());
  }
  if (!reader_.has_value()) {
    return codec::Refuse(v1::ERROR_REASON_PROTOCOL, "header", "expected a header first");
  }
  return reader_->Read(message, [this](const codec::TensorPlan& plan) {
    return upload_->Allocate(plan.dtype, plan.shape);
  });
}

absl::Status PutKeysReactor::BeginSet(const v1::KeySetHeader& header) {
  if (environment_.engine.is_draining()) {
    return engine::WithReason(absl::UnavailableError("the daemon is draining"),
                              engine::FailureReason::kUnavailable);
  }
  CIPHERD_ASSIGN_OR_RETURN(
      codec::KeySetReader reader,
      codec::KeySetReader::Create(header, environment_.programs.contexts(), environment_.limits));
  CIPHERD_ASSIGN_OR_RETURN(
      upload_, environment_.engine.keys().Reserve(Caller::Of(context_).tenant,
                                                  static_cast<int64_t>(reader.total_bytes())));
  reader_ = std::move(reader);
  return absl::OkStatus();
}

absl::Status PutKeysReactor::Commit() {
  if (!reader_.has_value()) {
    return codec::Refuse(v1::ERROR_REASON_PROTOCOL, "header", "the stream ended without one");
  }
  CIPHERD_ASSIGN_OR_RETURN(codec::KeySet received,
                           (*std::exchange(reader_, std::nullopt)).Finish());
  ckks::KeySet keys;
  for (codec::KeySet::Key& key : received.keys) {
    keys.emplace(key.id, ckks::EvaluationKey{key.id, *key.value.FindTensor("data")});
  }
  const engine::KeyStore::Committed stored = environment_.engine.keys().Commit(
      *std::exchange(upload_, std::nullopt), received.id, received.context_id, std::move(keys));
  CIPHERD_ASSIGN_OR_RETURN(*response_.mutable_key_set_id(),
                           codec::EncodeDigest(stored.keys->id, "key_set_id"));
  response_.set_existed(stored.existed);
  spdlog::info("key set stored key_set_id={} keys={} bytes={} existed={}", stored.keys->id,
               stored.keys->keys.size(), stored.keys->bytes, stored.existed);
  return absl::OkStatus();
}

}  // namespace cipherd::server
