// State of values between the wire and core/value. Internal to the codec.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "cipherd/v1/value.pb.h"
#include "core/value/exact_value.h"

namespace cipherd::codec::internal {

void EncodeMetadata(const value::ValueMetadata& metadata, v1::ValueMetadata* out);

// Absent fields stay absent. Refuses numbers of enumerations that have no meaning; nothing else is
// checked.
absl::StatusOr<value::ValueMetadata> DecodeMetadata(const v1::ValueMetadata& message,
                                                    std::string_view path);

}  // namespace cipherd::codec::internal
