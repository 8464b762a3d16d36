// Requests of the Open Inference Protocol as strangers may send them. Meant to run under
// AddressSanitizer and UBSan; what each refusal says is tested over a channel (tests/server).
#include "proto/inference/inference_codec.h"

#include <google/protobuf/stubs/logging.h>

#include <span>
#include <string>
#include <utility>

#include "core/base/status_macros.h"
#include "core/execution/value_tree_signature.h"
#include "gtest/gtest.h"
#include "proto/codec/error_detail.h"
#include "proto/codec/payload_reader.h"
#include "proto/codec/signature_codec.h"
#include "proto/codec/tree_admission.h"
#include "tests/codec/mutants.h"
#include "tests/codec/wire_values.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::oip {
namespace {

using ::cipherd::testing::ForEachMutant;
using ::cipherd::testing::MakeCiphertext;
using ::cipherd::testing::PayloadOf;
using ::cipherd::testing::SmallContext;
using value::ValueTree;

class InferenceCodecTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(signature_, execution::ValueTreeSignature::FromTree(values_));
    ASSERT_OK(codec::EncodeSignature(signature_, "inputs", program_.mutable_input_signature()));
    for (const char* name : {"a", "b"}) program_.add_inputs()->set_name(name);
    program_.add_outputs()->set_name("y");

    request_.set_model_name("m");
    request_.set_model_version("3");
    request_.set_id("r");
    (*request_.mutable_parameters())["context_id"].set_string_param(context_->id());
    (*request_.mutable_parameters())["key_set_id"].set_string_param(std::string(64, 'e'));
    // Not in the program's order.
    for (const size_t i : {1, 0}) {
      auto* input = request_.add_inputs();
      input->set_name(i == 0 ? "a" : "b");
      input->set_datatype("UINT64");
      for (const int64_t dimension : {2, i == 0 ? 4 : 3, 16}) input->add_shape(dimension);
      request_.add_raw_input_contents(PayloadOf(ValueTree::Tuple({values_[i]})));
    }
    request_.add_outputs()->set_name("y");
  }

  // As the daemon receives it.
  absl::StatusOr<ValueTree> Receive(const inference::ModelInferRequest& request) {
    v1::EvaluationHeader header;
    CIPHERD_RETURN_IF_ERROR(DecodeInferHeader(request, &header));
    CIPHERD_ASSIGN_OR_RETURN(const InferInputs inputs,
                             DecodeInferInputs(request, program_, context_));
    CIPHERD_RETURN_IF_ERROR(DecodeWantedOutputs(request, program_).status());
    CIPHERD_ASSIGN_OR_RETURN(codec::AdmittedTree admitted,
                             codec::AdmitTree(inputs.tree,
                                              {.contexts = std::span(&context_, 1),
                                               .signature = &signature_,
                                               .max_payload_bytes = 1 << 20,
                                               .actual_payload_bytes = InferPayloadBytes(request)},
                                              {}, "inputs"));
    CIPHERD_ASSIGN_OR_RETURN(
        codec::PayloadReader reader,
        codec::PayloadReader::Allocate(std::move(admitted), codec::PageableTensors()));
    for (std::string_view contents : inputs.contents) {
      CIPHERD_RETURN_IF_ERROR(reader.Write(contents));
    }
    return std::move(reader).Finish();
  }

  const codec::KnownContextPtr context_ = SmallContext();
  const ValueTree values_ = ValueTree::Tuple({ValueTree::Value(MakeCiphertext(*context_, 0)),
                                              ValueTree::Value(MakeCiphertext(*context_, 1))});
  execution::ValueTreeSignature signature_;
  v1::GetProgramResponse program_;
  inference::ModelInferRequest request_;
  // Protobuf logs strings that are no UTF-8, of which there are many here.
  google::protobuf::LogSilencer silencer_;
};

TEST_F(InferenceCodecTest, InputsArriveInTheProgramsOrder) {
  ASSERT_OK_AND_ASSIGN(const ValueTree received, Receive(request_));
  EXPECT_EQ(PayloadOf(received), PayloadOf(values_));
}

TEST_F(InferenceCodecTest, AMutantIsRefusedCleanlyOrMeansSomethingLawful) {
  int refused = 0, lawful = 0;
  ForEachMutant(request_.SerializeAsString(), [&](const std::string& mutant) {
    inference::ModelInferRequest request;
    if (!request.ParseFromString(mutant)) return;
    const absl::StatusOr<ValueTree> received = Receive(request);
    if (received.ok()) {
      EXPECT_OK(signature_.Validate(*received));
      ++lawful;
      return;
    }
    ++refused;
    const auto detail = codec::GetErrorDetail(received.status());
    ASSERT_TRUE(detail.has_value()) << std::string(received.status().ToString());
    EXPECT_NE(detail->reason(), v1::ERROR_REASON_UNSPECIFIED);
    EXPECT_EQ(received.status().code(), absl::StatusCode::kInvalidArgument);
  });
  EXPECT_GT(refused, 1000);
  EXPECT_GT(lawful, 1000);
}

}  // namespace
}  // namespace cipherd::oip
