// Seeds of the service's target: lawful sessions.
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cipherd/v1/evaluation.pb.h"
#include "inference/grpc_service.pb.h"
#include "proto/codec/context_codec.h"
#include "proto/codec/key_set_reader.h"
#include "proto/codec/tree_encoder.h"
#include "tests/codec/wire_values.h"
#include "tests/fuzz/key_set_seed.h"
#include "tests/fuzz/seeds.h"
#include "tests/fuzz/service_input.h"

namespace cipherd::fuzz {
namespace {

using testing::SmallContext;
using value::ValueTree;

constexpr int kEvaluateStream = 0, kEvaluate = 1, kPutKeys = 2, kGetKeyUpload = 3, kDropKeys = 4,
              kGetProgram = 5, kModelInfer = 8;

// The set's name, as whoever receives it computes it.
std::string KeySetId() {
  const std::vector<v1::PutKeysRequest> messages = KeySetMessages();
  const codec::KnownContextPtr context = SmallContext();
  codec::KeySetReader reader =
      codec::KeySetReader::Create(messages[0].header(), std::span(&context, 1), {}).value();
  for (size_t i = 1; i < messages.size(); ++i) {
    Require(reader.Read(messages[i], codec::PageableTensors()).ok(), "the keys are lawful");
  }
  return std::move(reader).Finish()->id;
}

class Session {
 public:
  Session& Open(int slot, int method) {
    return Add(slot, ServiceStep::kOpen, std::string(1, static_cast<char>(method)));
  }
  Session& Write(int slot, const google::protobuf::Message& message) {
    return Add(slot, ServiceStep::kWrite, message.SerializeAsString());
  }
  Session& Finish(int slot) { return Add(slot, ServiceStep::kFinish, ""); }
  Session& Cancel(int slot) { return Add(slot, ServiceStep::kCancel, ""); }
  Session& PutKeys() {
    Open(0, kPutKeys);
    for (const v1::PutKeysRequest& message : KeySetMessages()) Write(0, message);
    return Finish(0);
  }
  const std::string& bytes() const { return bytes_; }

 private:
  Session& Add(int slot, ServiceStep step, std::string_view rest) {
    AppendStep(slot, step, rest, bytes_);
    return *this;
  }

  std::string bytes_;
};

v1::EvaluateRequest Request() {
  v1::EvaluateRequest request;
  request.mutable_header()->set_program("p");
  request.mutable_header()->set_request_id("r");
  request.mutable_header()->set_key_set_id(codec::EncodeDigest(KeySetId(), "key_set_id").value());
  const ValueTree inputs =
      ValueTree::Tuple({ValueTree::Value(testing::MakeCiphertext(*SmallContext(), 0))});
  codec::PayloadSource payload =
      codec::EncodeTree(inputs, "inputs", request.mutable_header()->mutable_inputs()).value();
  payload.TakeInto(payload.total_bytes(), request.mutable_payload());
  return request;
}

inference::ModelInferRequest InferRequest() {
  const v1::EvaluateRequest same = Request();
  inference::ModelInferRequest request;
  request.set_model_name("p");
  (*request.mutable_parameters())["context_id"].set_string_param(SmallContext()->id());
  (*request.mutable_parameters())["key_set_id"].set_string_param(KeySetId());
  auto* input = request.add_inputs();
  input->set_name("x");
  input->set_datatype("UINT64");
  for (const int64_t dimension : {2, 4, 16}) input->add_shape(dimension);
  request.add_raw_input_contents(same.payload());
  return request;
}

}  // namespace

void AddServiceSeeds(const SeedSink& add) {
  const auto add_session = [&](std::string_view name, const Session& session) {
    add("service", name, session.bytes());
  };
  const v1::EvaluateRequest request = Request();
  v1::EvaluateStreamRequest header, first, second;
  *header.mutable_header() = request.header();
  header.mutable_header()->set_early_outputs(true);
  first.set_chunk(request.payload().substr(0, 100));
  second.set_chunk(request.payload().substr(100));

  add_session("evaluate", Session().PutKeys().Open(1, kEvaluate).Write(1, request));
  add_session("stream", Session()
                            .PutKeys()
                            .Open(1, kEvaluateStream)
                            .Write(1, header)
                            .Write(1, first)
                            .Write(1, second)
                            .Finish(1));
  add_session("infer", Session().PutKeys().Open(2, kModelInfer).Write(2, InferRequest()).Finish(2));
  add_session(
      "cancelled_stream",
      Session().PutKeys().Open(3, kEvaluateStream).Write(3, header).Write(3, first).Cancel(3));

  // A broken upload, asked for and gone on with; then its set is dropped under an evaluation.
  std::vector<v1::PutKeysRequest> upload = KeySetMessages();
  upload[0].mutable_header()->set_upload_id("0123456789abcdef");
  v1::PutKeysRequest rest = upload[0];
  rest.mutable_header()->set_resume_bytes(upload[2].chunk().size());
  v1::GetKeyUploadRequest question;
  question.set_upload_id("0123456789abcdef");
  v1::DropKeysRequest drop;
  drop.set_key_set_id(request.header().key_set_id());
  add_session("resumed_upload", Session()
                                    .Open(0, kPutKeys)
                                    .Write(0, upload[0])
                                    .Write(0, upload[1])
                                    .Write(0, upload[2])
                                    .Finish(0)
                                    .Open(1, kGetKeyUpload)
                                    .Write(1, question)
                                    .Finish(1)
                                    .Open(0, kPutKeys)
                                    .Write(0, rest)
                                    .Write(0, upload[3])
                                    .Write(0, upload[4])
                                    .Finish(0)
                                    .Open(2, kEvaluateStream)
                                    .Write(2, header)
                                    .Open(3, kDropKeys)
                                    .Write(3, drop)
                                    .Finish(3)
                                    .Write(2, first)
                                    .Write(2, second));

  v1::GetProgramRequest program;
  program.set_name("p");
  Session questions;
  questions.Open(0, kGetProgram).Write(0, program).Finish(0);
  // What asks for nothing in particular.
  for (int method = kGetProgram + 1; method < static_cast<int>(std::size(kServiceMethods));
       ++method) {
    if (method == kModelInfer) continue;
    questions.Open(0, method).Write(0, v1::ListProgramsRequest()).Finish(0);
  }
  add_session("questions", questions);
}

}  // namespace cipherd::fuzz
