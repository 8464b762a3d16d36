// The one form of the codec's refusals: `inputs[0].depth: expected 0 to 3, got 7`, with the reason
// and the path as detail. Internal to the codec.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "proto/codec/error_detail.h"

namespace cipherd::codec::internal {

// `field` is appended to `path` as it is: ".depth".
absl::Status Mismatch(std::string_view path, std::string_view field, std::string_view expected,
                      std::string_view actual,
                      v1::ErrorReason reason = v1::ERROR_REASON_MALFORMED_VALUE);

// `path.field: expected at most limit, got actual`, reason LIMIT_EXCEEDED.
absl::Status AboveLimit(std::string_view path, std::string_view field, uint64_t limit,
                        uint64_t actual);

// `status`, an error of a layer below whose message starts with a path, with that path as detail.
// One that names none is put under `path`.
absl::Status WithPathOf(const absl::Status& status, v1::ErrorReason reason, std::string_view path);

// "[2, 4, 8192]", shortened after 64 numbers.
std::string ListOf(const std::vector<int64_t>& numbers);

// Whether `name` may be a tensor's name or a dict's key: 1 to max_bytes printable ASCII characters
// other than quotes and backslashes, so that paths and logs stay readable. The status says what is
// wrong, naming `path`, and does not repeat the name.
absl::Status CheckName(std::string_view name, int max_bytes, std::string_view path);

}  // namespace cipherd::codec::internal
