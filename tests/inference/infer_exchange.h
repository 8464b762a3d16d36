// A request of the Open Inference Protocol and the daemon's side of it, up to the values that it
// evaluates.
#pragma once

#include <span>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "core/base/status_macros.h"
#include "core/execution/value_tree_signature.h"
#include "proto/codec/payload_reader.h"
#include "proto/codec/signature_codec.h"
#include "proto/codec/tree_admission.h"
#include "proto/inference/inference_codec.h"
#include "tests/codec/wire_values.h"

namespace cipherd::testing {

// Of a program that takes two values, "a" and "b", at depths 0 and 1.
struct InferExchange {
  InferExchange() {
    EXPECT_OK(codec::EncodeSignature(signature, "inputs", program.mutable_input_signature()));
    for (const char* name : {"a", "b"}) program.add_inputs()->set_name(name);
    program.add_outputs()->set_name("y");

    request.set_model_name("m");
    request.set_model_version("3");
    request.set_id("r");
    (*request.mutable_parameters())["context_id"].set_string_param(context->id());
    (*request.mutable_parameters())["key_set_id"].set_string_param(std::string(64, 'e'));
    // Not in the program's order.
    for (const size_t i : {1, 0}) {
      auto* input = request.add_inputs();
      input->set_name(i == 0 ? "a" : "b");
      input->set_datatype("UINT64");
      for (const int64_t dimension : {2, i == 0 ? 4 : 3, 16}) input->add_shape(dimension);
      request.add_raw_input_contents(PayloadOf(value::ValueTree::Tuple({values[i]})));
    }
    request.add_outputs()->set_name("y");
  }

  // As the daemon receives it.
  absl::StatusOr<value::ValueTree> Receive(const inference::ModelInferRequest& received) const {
    v1::EvaluationHeader header;
    CIPHERD_RETURN_IF_ERROR(oip::DecodeInferHeader(received, &header));
    CIPHERD_ASSIGN_OR_RETURN(const oip::InferInputs inputs,
                             oip::DecodeInferInputs(received, program, context));
    CIPHERD_RETURN_IF_ERROR(oip::DecodeWantedOutputs(received, program).status());
    CIPHERD_ASSIGN_OR_RETURN(
        codec::AdmittedTree admitted,
        codec::AdmitTree(inputs.tree,
                         {.contexts = std::span(&context, 1),
                          .signature = &signature,
                          .max_payload_bytes = 1 << 20,
                          .actual_payload_bytes = oip::InferPayloadBytes(received)},
                         {}, "inputs"));
    CIPHERD_ASSIGN_OR_RETURN(
        codec::PayloadReader reader,
        codec::PayloadReader::Allocate(std::move(admitted), codec::PageableTensors()));
    for (std::string_view contents : inputs.contents) {
      CIPHERD_RETURN_IF_ERROR(reader.Write(contents));
    }
    return std::move(reader).Finish();
  }

  const codec::KnownContextPtr context = SmallContext();
  const value::ValueTree values =
      value::ValueTree::Tuple({value::ValueTree::Value(MakeCiphertext(*context, 0)),
                               value::ValueTree::Value(MakeCiphertext(*context, 1))});
  const execution::ValueTreeSignature signature =
      execution::ValueTreeSignature::FromTree(values).value();
  v1::GetProgramResponse program;
  inference::ModelInferRequest request;
};

}  // namespace cipherd::testing
