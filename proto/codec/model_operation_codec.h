// Operations of models between the wire and core/planning. Internal to the codec.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cipherd/v1/model.pb.h"
#include "core/planning/model.h"

namespace cipherd::codec::internal {

absl::StatusOr<planning::ModelOperation> DecodeModelOperation(const v1::ModelOperation& message,
                                                              std::string_view path);
// Fields that the kind does not use, and those that have their defaults, are not written.
absl::Status EncodeModelOperation(const planning::ModelOperation& operation, std::string_view path,
                                  v1::ModelOperation* out);

}  // namespace cipherd::codec::internal
