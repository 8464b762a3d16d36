// Evaluations as the Open Inference Protocol says them (proto/inference/grpc_service.proto), to and
// from the wire format's own terms. What is then described goes through the same checks as what
// comes in those terms: here is only what the protocol adds (names, parameters, datatypes).
//
//   v1::EvaluationHeader header;
//   status = DecodeInferHeader(request, &header);                  // program, version, key set, id
//   CIPHERD_ASSIGN_OR_RETURN(InferInputs inputs,
//                            DecodeInferInputs(request, description, context));
//   // Admit inputs.tree, then read inputs.contents one after the other.
//   ...
//   CIPHERD_RETURN_IF_ERROR(EncodeInferOutputs(outputs, description, wanted, result, &response));
//
// Errors are InvalidArgument and name no bytes of the peer's. Thread-safe.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cipherd/v1/evaluation.pb.h"
#include "inference/grpc_service.pb.h"
#include "proto/codec/known_context.h"
#include "proto/codec/payload_source.h"

namespace cipherd::oip {

// Parameters of a request, strings of 64 lower-case hexadecimal digits each; others are ignored.
inline constexpr char kContextIdParameter[] = "context_id";
inline constexpr char kKeySetIdParameter[] = "key_set_id";

// The datatype of every tensor.
inline constexpr std::string_view kResidueDatatype = "UINT64";

// A model's version: none (0), or a number from 1 on. `path` names the field.
absl::StatusOr<uint32_t> DecodeModelVersion(std::string_view text, std::string_view path);

// All of the header but its inputs. After an error the rest is filled in all the same, so that the
// request can be counted and logged under its names.
absl::Status DecodeInferHeader(const inference::ModelInferRequest& request,
                               v1::EvaluationHeader* header);

// Bytes of all tensors of the request.
uint64_t InferPayloadBytes(const inference::ModelInferRequest& request);

struct InferInputs {
  // As the program takes it: one value an input, in its order, in the state that it asks for, with
  // the shapes and sizes that the request has.
  v1::ValueTree tree;
  // Of each of those. Views of the request.
  std::vector<std::string_view> contents;
};
// Checks the context that the request names (reason WRONG_CONTEXT) before it looks at any tensor.
// `program` is of `context`.
absl::StatusOr<InferInputs> DecodeInferInputs(const inference::ModelInferRequest& request,
                                              const v1::GetProgramResponse& program,
                                              const codec::KnownContextPtr& context);

// Which of the program's outputs the request asks for.
absl::StatusOr<std::vector<bool>> DecodeWantedOutputs(const inference::ModelInferRequest& request,
                                                      const v1::GetProgramResponse& program);

// Appends the wanted ones of `outputs`, whose payload is `payload`. Internal where they are not of
// `program`.
absl::Status EncodeInferOutputs(const v1::ValueTree& outputs, const v1::GetProgramResponse& program,
                                const std::vector<bool>& wanted, codec::PayloadSource& payload,
                                inference::ModelInferResponse* response);

}  // namespace cipherd::oip
