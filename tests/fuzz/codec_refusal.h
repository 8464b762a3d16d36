// What every refusal of the codec owes a peer.
#pragma once

#include "absl/status/status.h"
#include "proto/codec/error_detail.h"
#include "tests/fuzz/fuzz_target.h"

namespace cipherd::fuzz {

// The reason and, at the front of the message, the place. False, for Decode to return.
inline bool RefusedByCodec(const absl::Status& status) {
  const auto detail = codec::GetErrorDetail(status);
  Require(detail.has_value() && detail->reason() != v1::ERROR_REASON_UNSPECIFIED,
          "a refusal has a reason");
  Require(absl::IsInvalidArgument(status) || absl::IsUnimplemented(status),
          "what is refused is the sender's");
  return false;
}

}  // namespace cipherd::fuzz
