// A daemon in this process, spoken to by the Open Inference Protocol.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "inference/grpc_service.grpc.pb.h"
#include "proto/grpc_status/grpc_status.h"
#include "tests/server/program_files.h"
#include "tests/server/service_fixture.h"

namespace cipherd::server::testing {

using ::inference::ModelInferRequest;
using ::inference::ModelInferResponse;

inline constexpr char kModelInfer[] = "/inference.GRPCInferenceService/ModelInfer";

class InferenceTest : public ProgramFilesTest {
 protected:
  // Beside the fixture's: "pair" takes a at depth 0 and b at depth 1, and gives their negatives.
  void SetUp() override {
    StartWith([](ServerOptions&) {});
  }
  void StartWith(const std::function<void(ServerOptions&)>& change) {
    programs::ProgramSpec pair = SpecOf("negate");
    pair.name = "pair";
    pair.version = 7;
    pair.inputs = {{.name = "a", .layout = pair.inputs[0].layout},
                   {.name = "b", .depth = 1, .layout = pair.inputs[0].layout}};
    pair.operations = {{.name = "minus_a", .kind = programs::OperationKind::kNegate, .a = "a"},
                       {.name = "minus_b", .kind = programs::OperationKind::kNegate, .a = "b"}};
    pair.outputs = {{.name = "a_out", .edge = "minus_a", .layout = pair.outputs[0].layout},
                    {.name = "b_out", .edge = "minus_b", .layout = pair.outputs[0].layout}};
    WriteSpec(pair);
    ServerOptions options = TestOptions(directory_.path());
    change(options);
    Start(options);
    if (HasFatalFailure()) return;
    inference_stub_ = inference::GRPCInferenceService::NewStub(NewChannel());
  }

  // What `request` says of its inputs, in the protocol's words.
  ModelInferRequest Translate(const WireRequest& request, const std::vector<std::string>& names) {
    ModelInferRequest message;
    message.set_model_name(request.header.program());
    size_t at = 0;
    for (size_t i = 0; i < names.size(); ++i) {
      const v1::ExactValue& value =
          request.header.inputs().tuple().children(static_cast<int>(i)).value();
      const v1::Tensor& tensor = value.tensors(0).tensor();
      auto* input = message.add_inputs();
      input->set_name(names[i]);
      input->set_datatype("UINT64");
      *input->mutable_shape() = tensor.shape();
      message.add_raw_input_contents(request.payload.substr(at, tensor.byte_count()));
      at += tensor.byte_count();
    }
    return message;
  }
  static void SetParameter(ModelInferRequest& request, const char* name, const std::string& text) {
    (*request.mutable_parameters())[name].set_string_param(text);
  }
  // square_sum of Alice's.
  ModelInferRequest Good(uint64_t seed = 1) {
    ModelInferRequest request = Translate(GoodOfTheDaemonsOwn(seed), {"x"});
    SetParameter(request, "context_id", alice().program().known_context->id());
    SetParameter(request, "key_set_id", alice_keys());
    return request;
  }
  // Another ciphertext each time.
  WireRequest GoodOfTheDaemonsOwn(uint64_t seed) {
    return MakeWireRequest("square_sum", alice_keys(), alice().Encrypt(TestSlots(seed, 128)));
  }

  absl::Status Infer(const ModelInferRequest& request, ModelInferResponse* response) {
    grpc::ClientContext context;
    return FromGrpcStatus(inference_stub_->ModelInfer(&context, request, response));
  }
  absl::Status Infer(const ModelInferRequest& request) {
    ModelInferResponse response;
    return Infer(request, &response);
  }
  absl::Status ModelReady(const std::string& name, const std::string& version, bool* ready) {
    grpc::ClientContext context;
    inference::ModelReadyRequest request;
    request.set_name(name);
    request.set_version(version);
    inference::ModelReadyResponse response;
    const absl::Status status =
        FromGrpcStatus(inference_stub_->ModelReady(&context, request, &response));
    *ready = response.ready();
    return status;
  }
  absl::StatusOr<bool> ServerReady() {
    grpc::ClientContext context;
    inference::ServerReadyResponse response;
    const absl::Status status =
        FromGrpcStatus(inference_stub_->ServerReady(&context, {}, &response));
    if (!status.ok()) return status;
    return response.ready();
  }
  absl::Status Describe(const std::string& name, const std::string& version,
                        inference::ModelMetadataResponse* metadata) {
    grpc::ClientContext context;
    inference::ModelMetadataRequest request;
    request.set_name(name);
    request.set_version(version);
    return FromGrpcStatus(inference_stub_->ModelMetadata(&context, request, metadata));
  }
  size_t LeasedTrees() {
    return (*server_->engine().FindProgram("square_sum"))->trees().leased_count();
  }

  std::unique_ptr<inference::GRPCInferenceService::Stub> inference_stub_;
};

}  // namespace cipherd::server::testing
