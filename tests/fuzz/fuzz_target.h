// A fuzz target: one decoder of bytes from outside, given whatever comes.
//
//   bool Decode(std::string_view bytes) {
//     const auto decoded = codec::ParseServingText(bytes, "fuzz");
//     if (!decoded.ok()) return Refused(decoded.status());
//     Require(..., "what was taken is lawful");
//     return true;
//   }
//
// libfuzzer_entry.cc makes a fuzzer of it (preset `fuzz`), replay_main.cc a test of what is in its
// corpus. What a target must not do is what sanitizers see, hang, take memory without measure, or
// break a Require.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "absl/status/status.h"

namespace cipherd::fuzz {

// Of each target: hands `bytes`, a heap block of exactly this size, to the decoder. True where it
// took them: replay_main.cc looks that some seed of each target is taken.
bool Decode(std::string_view bytes);

// Ends the process where a property does not hold.
inline void Require(bool holds, const char* property) {
  if (holds) return;
  std::fprintf(stderr, "property broken: %s\n", property);
  std::abort();
}

// A refusal that says why. False, for Decode to return.
inline bool Refused(const absl::Status& status) {
  Require(!status.ok() && !status.message().empty(), "a refusal says why");
  Require(status.code() != absl::StatusCode::kInternal, "others' bytes are no fault of ours");
  return false;
}

}  // namespace cipherd::fuzz
