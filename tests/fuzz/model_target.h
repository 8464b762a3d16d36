// What is asked of a model, however it was written.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "core/planning/model_check.h"
#include "proto/codec/model_codec.h"
#include "tests/fuzz/codec_refusal.h"
#include "tests/fuzz/message_bytes.h"

namespace cipherd::fuzz {

using ModelReader = absl::StatusOr<planning::Model> (*)(std::string_view text,
                                                        std::string_view path);

inline bool TakeModel(ModelReader read, std::string_view text) {
  SilenceProtobuf();
  const auto model = read(text, "model");
  if (!model.ok()) return RefusedByCodec(model.status());
  const auto message = codec::EncodeModel(*model);
  Require(message.ok() && codec::DecodeModel(*message, "again").ok(),
          "what was read is written and read");
  const auto shapes = planning::CheckModel(*model);
  return shapes.ok() || Refused(shapes.status());
}

}  // namespace cipherd::fuzz
