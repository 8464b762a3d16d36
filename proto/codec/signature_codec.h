// Signatures between the wire and core/execution, without loss.
//
//   CIPHERD_RETURN_IF_ERROR(EncodeSignature(signature, "inputs",
//   response.mutable_input_signature())); CIPHERD_ASSIGN_OR_RETURN(ValueTreeSignature signature,
//                            DecodeSignature(response.input_signature(), limits, "inputs"));
//
// Encoding fails (InvalidArgument) for metadata that the wire has no field for, or a field of
// another type than the wire's; decoding for numbers without a meaning and beyond the limits.
// Thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cipherd/v1/value.pb.h"
#include "core/execution/value_tree_signature.h"
#include "proto/codec/wire_limits.h"

namespace cipherd::codec {

absl::Status EncodeSignature(const execution::ValueTreeSignature& signature, std::string_view path,
                             v1::ValueTreeSignature* out);
absl::StatusOr<execution::ValueTreeSignature> DecodeSignature(const v1::ValueTreeSignature& message,
                                                              const WireLimits& limits,
                                                              std::string_view path);

// Describes a value of `signature`: in its state, but with the shape and bytes that its only tensor
// really has. For peers that send tensors alone, and mean the state that is asked for.
void DescribeAs(const v1::ValueSignature& signature, std::span<const int64_t> shape,
                uint64_t byte_count, v1::ExactValue* out);

}  // namespace cipherd::codec
