// Keys on the wire and the identity of their set (core/ckks/key_set_id.h).
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "core/base/sha256.h"
#include "core/ckks/evaluation_keys.h"
#include "core/ckks/key_set_id.h"
#include "core/value/exact_value.h"

namespace cipherd::codec {

using ckks::KeySetIdBuilder;

// Which key of a key set `key` is. InvalidArgument for a type that is no evaluation key, or a
// rotation key without its step.
absl::StatusOr<ckks::KeyId> KeyIdOf(const value::ExactValue& key, std::string_view path);

// SHA-256 of the payload of a key in the canonical encoding. InvalidArgument unless its tensors are
// contiguous and on the host.
absl::StatusOr<base::Sha256Digest> PayloadDigest(const value::ExactValue& key,
                                                 std::string_view path);

}  // namespace cipherd::codec
