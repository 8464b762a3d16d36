// The value of a traceparent header.
#include "server/trace_context.h"
#include "tests/fuzz/fuzz_target.h"

namespace cipherd::fuzz {

bool Decode(std::string_view bytes) {
  const auto trace = server::TraceContext::Parse(bytes);
  if (!trace.has_value()) return false;
  constexpr std::string_view kDigits = "0123456789abcdef";
  Require(trace->trace_id.size() == 32 && trace->span_id.size() == 16, "ids have their length");
  Require((trace->trace_id + trace->span_id).find_first_not_of(kDigits) == std::string::npos,
          "what goes into the log is digits");
  return true;
}

}  // namespace cipherd::fuzz
