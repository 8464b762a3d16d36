// Reads messages in protobuf's text form. Internal to the codec.
#pragma once

#include <string_view>

#include "absl/status/status.h"
#include "google/protobuf/message.h"

namespace cipherd::codec::internal {

// InvalidArgument with the position of the first error: path:line:column.
absl::Status ParseTextMessage(std::string_view text, std::string_view path,
                              google::protobuf::Message& message);

}  // namespace cipherd::codec::internal
