#include "server/put_keys_reactor.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "proto/codec/context_codec.h"
#include "proto/codec/error_detail.h"
#include "server/engine/failure_reason.h"
#include "server/wire_message.h"
#include "spdlog/spdlog.h"

namespace cipherd::server {
namespace {

absl::Status CheckUploadId(const std::string& id) {
  if (id.empty() || (id.size() >= 16 && id.size() <= 64)) return absl::OkStatus();
  return codec::Refuse(v1::ERROR_REASON_MALFORMED_VALUE, "header.upload_id",
                       absl::StrCat("expected 16 to 64 bytes or none, got ", id.size()));
}

}  // namespace

PutKeysReactor::PutKeysReactor(const ServiceEnvironment& environment,
                               grpc::CallbackServerContext& context, grpc::ByteBuffer& response)
    : StreamReactor("PutKeys", environment, context, environment.calls), response_(response) {
  Start();
}

void PutKeysReactor::OnHalfClose() {
  absl::StatusOr<Complete> complete = absl::UnknownError("");
  {
    absl::MutexLock lock(&mu_);
    if (is_finished_) return;
    // A connection that broke may look like a half-close for a moment: what is incomplete was cut.
    if (context_.IsCancelled() ||
        (received_.has_value() && received_->reader.remaining_bytes() > 0)) {
      FinishBroken(EarlyEnd());
      return;
    }
    complete = TakeComplete();
    if (!complete.ok()) {
      FinishWith(complete.status());
      return;
    }
    state_ = State::kCommitting;
  }
  // Calls back, maybe before it returns; this object may be gone then.
  environment_.engine.keys().Commit(
      std::move(complete->memory), std::move(complete->set),
      [this](const absl::StatusOr<engine::KeyStore::Committed>& stored) { OnStored(stored); });
}

absl::Status PutKeysReactor::Receive(grpc::ByteBuffer& bytes) {
  v1::PutKeysRequest message;
  CIPHERD_RETURN_IF_ERROR(ParseMessage(bytes, message));
  if (message.has_header()) {
    if (received_.has_value()) {
      return codec::Refuse(v1::ERROR_REASON_PROTOCOL, "header", "expected one header, got another");
    }
    return BeginSet(message.header());
  }
  if (!received_.has_value()) {
    return codec::Refuse(v1::ERROR_REASON_PROTOCOL, "header", "expected a header first");
  }
  engine::KeyUpload& memory = received_->memory;
  return received_->reader.Read(
      message, [&memory](const codec::TensorPlan& plan) { return memory.Allocate(plan.shape); });
}

absl::Status PutKeysReactor::BeginSet(const v1::KeySetHeader& header) {
  if (environment_.engine.is_draining()) {
    return engine::WithReason(absl::UnavailableError("the daemon is draining"),
                              engine::FailureReason::kUnavailable);
  }
  CIPHERD_RETURN_IF_ERROR(CheckUploadId(header.upload_id()));
  if (header.upload_id().empty()) {
    if (header.resume_bytes() > 0) {
      return codec::Refuse(v1::ERROR_REASON_PROTOCOL, "header.resume_bytes",
                           "expected an upload_id with it");
    }
    return ReserveMemory(header);
  }
  const UploadTable::Key key{caller().tenant, header.upload_id()};
  CIPHERD_ASSIGN_OR_RETURN(
      std::optional<ReceivedKeys> kept,
      environment_.uploads.Begin(key, header.resume_bytes(), [this] { context_.TryCancel(); }));
  upload_ = key;
  if (!kept.has_value()) return ReserveMemory(header);
  const codec::KeySetReader& reader = kept->reader;
  if (reader.context().id_bytes() != header.context_id() ||
      reader.key_count() != header.key_count() || reader.total_bytes() != header.total_bytes()) {
    return codec::Refuse(v1::ERROR_REASON_PROTOCOL, "header",
                         "expected that of the upload that it goes on with");
  }
  received_ = std::move(kept);
  return absl::OkStatus();
}

absl::Status PutKeysReactor::ReserveMemory(const v1::KeySetHeader& header) {
  CIPHERD_ASSIGN_OR_RETURN(
      codec::KeySetReader reader,
      codec::KeySetReader::Create(header, environment_.programs.contexts(), environment_.limits));
  CIPHERD_ASSIGN_OR_RETURN(engine::KeyUpload memory,
                           environment_.engine.keys().Reserve(
                               caller().tenant, static_cast<int64_t>(reader.total_bytes())));
  received_.emplace(ReceivedKeys{std::move(reader), std::move(memory)});
  return absl::OkStatus();
}

absl::StatusOr<PutKeysReactor::Complete> PutKeysReactor::TakeComplete() {
  if (!received_.has_value()) {
    return codec::Refuse(v1::ERROR_REASON_PROTOCOL, "header", "the stream ended without one");
  }
  ReceivedKeys received = *std::exchange(received_, std::nullopt);
  CIPHERD_ASSIGN_OR_RETURN(codec::KeySet keys, std::move(received.reader).Finish());
  Complete complete{.memory = std::move(received.memory),
                    .set = {.id = keys.id, .context_id = keys.context_id}};
  for (codec::KeySet::Key& key : keys.keys) {
    complete.set.keys.emplace(key.id, ckks::EvaluationKey{key.id, *key.value.FindTensor("data")});
    complete.set.digests.emplace(key.id, key.payload_digest);
  }
  return complete;
}

void PutKeysReactor::OnStored(const absl::StatusOr<engine::KeyStore::Committed>& stored) {
  absl::Status status = stored.status();
  std::string key_set_id;
  if (stored.ok()) {
    const engine::KeySetInfo& info = *stored->info;
    v1::PutKeysResponse response;
    response.set_existed(stored->existed);
    absl::StatusOr<std::string> id = codec::EncodeDigest(info.id, "key_set_id");
    status = id.status();
    if (id.ok()) {
      key_set_id = info.id;
      *response.mutable_key_set_id() = *std::move(id);
      status = SerializeMessage(response, response_);
    }
    spdlog::info("key set stored key_set_id={} keys={} bytes={} existed={}", info.id,
                 info.keys.size(), info.bytes, stored->existed);
  }
  absl::MutexLock lock(&mu_);
  if (upload_.has_value()) {
    environment_.uploads.End(*std::exchange(upload_, std::nullopt), key_set_id);
  }
  FinishWith(status);
}

void PutKeysReactor::OnStall() {
  // While the set is stored nothing is asked of the client.
  if (state_ != State::kReceiving) return;
  FinishBroken(Stalled(environment_.stalls, "the next message of the upload"));
}

absl::Status PutKeysReactor::EarlyEnd() const {
  if (context_.IsCancelled() || !received_.has_value()) {
    return absl::CancelledError("the client left during the upload");
  }
  return codec::Refuse(
      v1::ERROR_REASON_MALFORMED_VALUE, "keys",
      absl::StrCat("expected ", received_->reader.total_bytes(),
                   " bytes, as declared, got the end after ", received_->received_bytes()));
}

void PutKeysReactor::FinishBroken(const absl::Status& status) {
  if (upload_.has_value() && received_.has_value() && received_->received_bytes() > 0) {
    environment_.uploads.Park(*std::exchange(upload_, std::nullopt),
                              *std::exchange(received_, std::nullopt));
  }
  FinishWith(status);
}

void PutKeysReactor::Release(const absl::Status&) {
  received_.reset();
  if (upload_.has_value()) environment_.uploads.End(*std::exchange(upload_, std::nullopt), "");
}

}  // namespace cipherd::server
