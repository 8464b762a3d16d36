// Values and trees to the wire: a description, and the payload that follows it.
//
//   v1::EvaluationHeader header;
//   CIPHERD_ASSIGN_OR_RETURN(PayloadSource payload,
//                            EncodeTree(inputs, "inputs", header.mutable_inputs()));
//
// Takes contiguous host tensors; others, secret keys and nodes that are neither tensor, value nor
// container are InvalidArgument naming their path. Whether a receiver will admit the value is for
// the receiver to say. Thread-safe.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "cipherd/v1/value.pb.h"
#include "core/value/exact_value.h"
#include "core/value/value_tree.h"
#include "proto/codec/payload_source.h"

namespace cipherd::codec {

absl::StatusOr<PayloadSource> EncodeTree(const value::ValueTree& tree, std::string_view path,
                                         v1::ValueTree* out);
absl::StatusOr<PayloadSource> EncodeValue(const value::ExactValue& value, std::string_view path,
                                          v1::ExactValue* out);

}  // namespace cipherd::codec
