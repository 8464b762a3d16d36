#include "proto/codec/serving_codec.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "cipherd/v1/serving.pb.h"
#include "core/base/status_macros.h"
#include "proto/codec/mismatch.h"
#include "proto/codec/operation_codec.h"
#include "proto/codec/text_message.h"

namespace cipherd::codec {

absl::StatusOr<programs::ServingSpec> ParseServingText(std::string_view text,
                                                       std::string_view path) {
  v1::ServingSettings message;
  CIPHERD_RETURN_IF_ERROR(internal::ParseTextMessage(text, path, message));
  programs::ServingSpec spec;
  const auto at = [&](const char* field) { return absl::StrCat(std::string(path), ".", field); };
  if (message.has_instances()) {
    CIPHERD_ASSIGN_OR_RETURN(spec.instances, internal::ToInt(message.instances(), at("instances")));
  }
  for (const uint32_t size : message.batch_sizes()) {
    CIPHERD_ASSIGN_OR_RETURN(spec.batch_sizes.emplace_back(),
                             internal::ToInt(size, at("batch_sizes")));
  }
  if (message.has_queue_capacity()) {
    CIPHERD_ASSIGN_OR_RETURN(spec.queue_capacity,
                             internal::ToInt(message.queue_capacity(), at("queue_capacity")));
  }
  if (message.has_warmup()) {
    CIPHERD_ASSIGN_OR_RETURN(spec.warmup, internal::ToInt(message.warmup(), at("warmup")));
  }
  if (message.has_constant_memory_bytes()) {
    constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
    if (message.constant_memory_bytes() > kMost) {
      return internal::Mismatch(path, ".constant_memory_bytes", absl::StrCat("at most ", kMost),
                                absl::StrCat(message.constant_memory_bytes()));
    }
    spec.constant_memory_bytes = static_cast<int64_t>(message.constant_memory_bytes());
  }
  if (message.has_priority()) spec.priority = message.priority();
  if (message.has_max_batch_delay_seconds()) {
    spec.max_batch_delay_seconds = message.max_batch_delay_seconds();
  }
  if (message.has_default_timeout_seconds()) {
    spec.default_timeout_seconds = message.default_timeout_seconds();
  }
  if (message.has_longest_timeout_seconds()) {
    spec.longest_timeout_seconds = message.longest_timeout_seconds();
  }
  return spec;
}

}  // namespace cipherd::codec
