#include "tests/client/fake_service.h"

#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/ckks/ciphertext.h"
#include "core/ckks/key_set.h"
#include "core/execution/value_tree_signature.h"
#include "grpcpp/server_builder.h"
#include "proto/codec/context_codec.h"
#include "proto/codec/error_detail.h"
#include "proto/codec/key_set_reader.h"
#include "proto/codec/program_codec.h"
#include "proto/codec/signature_codec.h"
#include "proto/grpc_status/grpc_status.h"
#include "proto/grpc_status/transport.h"

namespace cipherd::client {
namespace {

constexpr programs::SlotLayout kLayout = {
    .item_count = 4, .item_stride = 1, .element_count = 16, .element_stride = 4};

codec::KnownContextPtr SmallContext() {
  auto parameters = ckks::MakeContextParameters({.log_n = 8,
                                                 .base_prime_bits = 55,
                                                 .depth_prime_bits = 40,
                                                 .max_depth = 1,
                                                 .p_prime_bits = 56,
                                                 .p_prime_count = 2},
                                                ckks::SecurityPolicy::kAllowInsecure);
  return *codec::KnownContext::Create(*std::move(parameters), ckks::SecurityPolicy::kAllowInsecure);
}

// A tuple of one ciphertext as the encryptor makes it.
execution::ValueTreeSignature CiphertextSignature(const codec::KnownContext& context) {
  const ckks::ContextParameters& parameters = context.parameters();
  ckks::Ciphertext ciphertext;
  ciphertext.data = *value::Tensor::AllocateHost(
      value::DType::kUint64, {2, parameters.active_q_count(0), parameters.ring_degree()});
  ciphertext.scale = parameters.default_scale;
  return *execution::ValueTreeSignature::FromTree(value::ValueTree::Tuple(
      {value::ValueTree::Value(ciphertext.ToValue(parameters, context.id()))}));
}

}  // namespace

FakeService::FakeService() : context_(SmallContext()) {
  info.set_version("fake");
  info.set_device("cpu:0");
  codec::EncodeLimits({}, info.mutable_limits());
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
  builder.RegisterService(this);
  server_ = builder.BuildAndStart();
}

FakeService::~FakeService() { Stop(); }

void FakeService::Stop() {
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
}

ClientOptions FakeService::ClientOptions() const {
  client::ClientOptions options;
  options.target = absl::StrCat("127.0.0.1:", port_);
  options.security_policy = ckks::SecurityPolicy::kAllowInsecure;
  return options;
}

std::string FakeService::authorization() {
  absl::MutexLock lock(&mu_);
  return authorization_;
}
int FakeService::unary_count() {
  absl::MutexLock lock(&mu_);
  return unary_count_;
}
int FakeService::stream_count() {
  absl::MutexLock lock(&mu_);
  return stream_count_;
}
int FakeService::key_set_count() {
  absl::MutexLock lock(&mu_);
  return static_cast<int>(key_sets_.size());
}

std::vector<std::string> FakeService::routes() {
  absl::MutexLock lock(&mu_);
  return routes_;
}
std::string FakeService::upload_id() {
  absl::MutexLock lock(&mu_);
  return upload_id_;
}

void FakeService::RecordRoute(const std::string& method, const grpc::ServerContext& context) {
  const auto found = context.client_metadata().find(transport::kKeySetMetadata);
  absl::MutexLock lock(&mu_);
  routes_.push_back(method + " " +
                    (found == context.client_metadata().end()
                         ? ""
                         : std::string(found->second.data(), found->second.size())));
}

grpc::Status FakeService::GetServerInfo(grpc::ServerContext* context,
                                        const v1::GetServerInfoRequest*, v1::ServerInfo* response) {
  const auto& metadata = context->client_metadata();
  const auto found = metadata.find("authorization");
  absl::MutexLock lock(&mu_);
  authorization_ =
      found == metadata.end() ? "" : std::string(found->second.data(), found->second.size());
  *response = info;
  return grpc::Status::OK;
}

grpc::Status FakeService::ListPrograms(grpc::ServerContext*, const v1::ListProgramsRequest*,
                                       v1::ListProgramsResponse* response) {
  *response->add_programs() = DescribeEcho().summary();
  return grpc::Status::OK;
}

v1::GetProgramResponse FakeService::DescribeEcho() const {
  v1::GetProgramResponse program;
  program.mutable_summary()->set_name("echo");
  program.mutable_summary()->set_version(1);
  program.mutable_summary()->set_ready(true);
  codec::EncodeContext(context_->parameters(), program.mutable_context());
  program.set_context_id(context_->id_bytes());
  const execution::ValueTreeSignature signature = CiphertextSignature(*context_);
  codec::EncodeSignature(signature, "inputs", program.mutable_input_signature()).IgnoreError();
  codec::EncodeSignature(signature, "outputs", program.mutable_output_signature()).IgnoreError();
  codec::EncodeProgramInput({.name = "x", .layout = kLayout}, "x", program.add_inputs())
      .IgnoreError();
  codec::EncodeProgramOutput({.name = "y", .edge = "x", .layout = kLayout}, "y",
                             program.add_outputs())
      .IgnoreError();
  const ckks::KeyId keys[] = {ckks::KeyId::Relinearization(),
                              ckks::KeyId::Rotation(1, context_->parameters().slot_count())};
  for (const ckks::KeyId& key : keys) codec::EncodeKeyId(key, program.add_required_keys());
  const int64_t bytes =
      2 * context_->parameters().active_q_count(0) * context_->parameters().ring_degree() * 8;
  program.set_input_bytes(bytes);
  program.set_output_bytes(bytes);
  return program;
}

grpc::Status FakeService::GetProgram(grpc::ServerContext*, const v1::GetProgramRequest* request,
                                     v1::GetProgramResponse* response) {
  if (request->name() != "echo") {
    return ToGrpcStatus(codec::WithErrorDetail(absl::NotFoundError("no such program"),
                                               v1::ERROR_REASON_UNKNOWN_PROGRAM, "name"));
  }
  *response = DescribeEcho();
  if (change_program) change_program(*response);
  return grpc::Status::OK;
}

grpc::Status FakeService::PutKeys(grpc::ServerContext* context,
                                  grpc::ServerReader<v1::PutKeysRequest>* reader,
                                  v1::PutKeysResponse* response) {
  const auto receive = [&]() -> absl::StatusOr<codec::KeySet> {
    v1::PutKeysRequest message;
    reader->Read(&message);
    RecordRoute("PutKeys", *context);
    {
      absl::MutexLock lock(&mu_);
      upload_id_ = message.header().upload_id();
    }
    CIPHERD_ASSIGN_OR_RETURN(codec::KeySetReader keys,
                             codec::KeySetReader::Create(message.header(), std::span(&context_, 1),
                                                         codec::DecodeLimits(info.limits(), {})));
    while (reader->Read(&message)) {
      CIPHERD_RETURN_IF_ERROR(keys.Read(message, codec::PageableTensors()));
    }
    return std::move(keys).Finish();
  };
  const absl::StatusOr<codec::KeySet> keys = receive();
  if (!keys.ok()) return ToGrpcStatus(keys.status());
  response->set_key_set_id(*codec::EncodeDigest(keys->id, "id"));
  {
    absl::MutexLock lock(&mu_);
    response->set_existed(!key_sets_.insert(response->key_set_id()).second);
  }
  if (change_put_keys) change_put_keys(*response);
  return grpc::Status::OK;
}

absl::Status FakeService::CheckKeySet(const std::string& id) {
  absl::MutexLock lock(&mu_);
  if (key_sets_.count(id) > 0) return absl::OkStatus();
  return codec::WithErrorDetail(absl::NotFoundError("no such key set"),
                                v1::ERROR_REASON_UNKNOWN_KEY_SET, "key_set_id");
}

grpc::Status FakeService::DropKeys(grpc::ServerContext* context, const v1::DropKeysRequest* request,
                                   v1::DropKeysResponse*) {
  RecordRoute("DropKeys", *context);
  const absl::Status status = CheckKeySet(request->key_set_id());
  absl::MutexLock lock(&mu_);
  key_sets_.erase(request->key_set_id());
  return ToGrpcStatus(status);
}

grpc::Status FakeService::Evaluate(grpc::ServerContext* context, const v1::EvaluateRequest* request,
                                   v1::EvaluateResponse* response) {
  RecordRoute("Evaluate", *context);
  {
    absl::MutexLock lock(&mu_);
    ++unary_count_;
  }
  if (!evaluation_error.ok()) return ToGrpcStatus(evaluation_error);
  if (before_evaluation) {
    if (absl::Status status = before_evaluation(*context); !status.ok())
      return ToGrpcStatus(status);
  }
  if (absl::Status status = CheckKeySet(request->header().key_set_id()); !status.ok())
    return ToGrpcStatus(status);
  *response->mutable_outputs() = request->header().inputs();
  response->set_payload(request->payload());
  if (change_evaluation) change_evaluation(*response);
  return grpc::Status::OK;
}

grpc::Status FakeService::EvaluateStream(
    grpc::ServerContext* context,
    grpc::ServerReaderWriter<v1::EvaluateStreamResponse, v1::EvaluateStreamRequest>* stream) {
  RecordRoute("EvaluateStream", *context);
  {
    absl::MutexLock lock(&mu_);
    ++stream_count_;
  }
  if (!evaluation_error.ok()) return ToGrpcStatus(evaluation_error);
  v1::EvaluateStreamRequest message;
  v1::EvaluateResponse whole;
  stream->Read(&message);
  *whole.mutable_outputs() = message.header().inputs();
  while (stream->Read(&message)) whole.mutable_payload()->append(message.chunk());
  if (change_evaluation) change_evaluation(whole);

  v1::EvaluateStreamResponse response;
  *response.mutable_header()->mutable_outputs() = whole.outputs();
  stream->Write(response);
  if (sends_times_first) {
    response.mutable_stage_times();
    stream->Write(response);
  }
  const size_t chunk_bytes = info.limits().max_chunk_bytes();
  for (size_t begin = 0; begin < whole.payload().size(); begin += chunk_bytes) {
    response.set_chunk(whole.payload().substr(begin, chunk_bytes));
    stream->Write(response);
  }
  return behind_outputs ? ToGrpcStatus(behind_outputs(*context)) : grpc::Status::OK;
}

}  // namespace cipherd::client
