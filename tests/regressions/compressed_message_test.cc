// A message that says it is compressed was unpacked before its size was looked at: 700 KiB became
// 700 MiB in the daemon, for every call, before anything was admitted.
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "inference/grpc_service.grpc.pb.h"
#include "tests/server/service_fixture.h"

namespace cipherd::server {
namespace {

using namespace server::testing;  // NOLINT: the test's own vocabulary

using CompressedMessageTest = ServiceTest;

TEST_F(CompressedMessageTest, IsRefusedBeforeItIsUnpacked) {
  const auto inference_stub = inference::GRPCInferenceService::NewStub(NewChannel());
  // Far above every limit: unpacked, it would be refused for its size.
  const std::string zeros(size_t{64} << 20, '\0');
  for (const grpc_compression_algorithm algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    grpc::ClientContext contexts[3];
    for (grpc::ClientContext& context : contexts) context.set_compression_algorithm(algorithm);

    v1::EvaluateRequest request;
    request.set_payload(zeros);
    v1::EvaluateResponse response;
    EXPECT_EQ(stub_->Evaluate(&contexts[0], request, &response).error_code(),
              grpc::StatusCode::UNIMPLEMENTED);

    const auto stream = stub_->EvaluateStream(&contexts[1]);
    v1::EvaluateStreamRequest message;
    message.set_chunk(zeros);
    stream->Write(message);
    stream->WritesDone();
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNIMPLEMENTED);

    inference::ModelInferRequest infer;
    infer.add_raw_input_contents(zeros);
    inference::ModelInferResponse inferred;
    EXPECT_EQ(inference_stub->ModelInfer(&contexts[2], infer, &inferred).error_code(),
              grpc::StatusCode::UNIMPLEMENTED);
  }
  ExpectGoodRequestSucceeds();
}

}  // namespace
}  // namespace cipherd::server
