// Contexts between the wire and core/ckks.
//
//   EncodeContext(parameters, response.mutable_context());
//   CIPHERD_ASSIGN_OR_RETURN(ckks::ContextParameters parameters,
//                            DecodeContext(response.context(), policy, "context"));
//
// Errors are InvalidArgument, reason MALFORMED_VALUE. Thread-safe.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "cipherd/v1/context.pb.h"
#include "core/ckks/context_parameters.h"

namespace cipherd::codec {

void EncodeContext(const ckks::ContextParameters& parameters, v1::ContextParameters* out);

// Checks that every number fits its field, then ContextParameters::Validate(policy). `path` names
// the message in errors.
absl::StatusOr<ckks::ContextParameters> DecodeContext(const v1::ContextParameters& message,
                                                      ckks::SecurityPolicy policy,
                                                      std::string_view path);

// The same without Validate: for contexts that something else validates (programs).
absl::StatusOr<ckks::ContextParameters> DecodeContextUnvalidated(
    const v1::ContextParameters& message, std::string_view path);

// A SHA-256 as it travels (32 bytes) and as it is named in values, files and logs (64 lower-case
// hexadecimal digits). For context ids and key-set ids.
absl::StatusOr<std::string> EncodeDigest(std::string_view hex, std::string_view path);
absl::StatusOr<std::string> DecodeDigest(std::string_view bytes, std::string_view path);

}  // namespace cipherd::codec
