// Operations of programs, and the numbers in them, between the wire and core/programs. Internal to
// the codec.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cipherd/v1/program.pb.h"
#include "core/programs/program_spec.h"

namespace cipherd::codec::internal {

// A number that the wire carries as uint32: InvalidArgument where it is not in [least, 2^32).
absl::StatusOr<uint32_t> ToUint32(int64_t number, int64_t least, std::string_view path);
// A number that core holds as int: InvalidArgument where it is 2^31 or more.
absl::StatusOr<int> ToInt(uint32_t number, std::string_view path);

absl::StatusOr<programs::Operation> DecodeOperation(const v1::Operation& message,
                                                    std::string_view path);
// Fields that the kind does not use are not written.
absl::Status EncodeOperation(const programs::Operation& operation, std::string_view path,
                             v1::Operation* out);

}  // namespace cipherd::codec::internal
