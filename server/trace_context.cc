#include "server/trace_context.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

namespace cipherd::server {
namespace {

// version "-" trace-id "-" parent-id "-" flags
constexpr size_t kVersionDigits = 2;
constexpr size_t kTraceIdBegin = 3;
constexpr size_t kTraceIdDigits = 32;
constexpr size_t kSpanIdBegin = 36;
constexpr size_t kSpanIdDigits = 16;
constexpr size_t kFlagsBegin = 53;
constexpr size_t kFlagsDigits = 2;
constexpr size_t kLength = 55;

bool IsLowerHex(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// An id of zeros only is none.
bool IsId(std::string_view text) {
  return IsLowerHex(text) && text.find_first_not_of('0') != std::string_view::npos;
}

}  // namespace

std::optional<TraceContext> TraceContext::Parse(std::string_view traceparent) {
  if (traceparent.size() < kLength) return std::nullopt;
  const std::string_view version = traceparent.substr(0, kVersionDigits);
  const std::string_view trace_id = traceparent.substr(kTraceIdBegin, kTraceIdDigits);
  const std::string_view span_id = traceparent.substr(kSpanIdBegin, kSpanIdDigits);
  const std::string_view flags = traceparent.substr(kFlagsBegin, kFlagsDigits);
  for (const size_t separator : {kTraceIdBegin, kSpanIdBegin, kFlagsBegin}) {
    if (traceparent[separator - 1] != '-') return std::nullopt;
  }
  if (!IsLowerHex(version) || version == "ff" || !IsLowerHex(flags)) return std::nullopt;
  if (!IsId(trace_id) || !IsId(span_id)) return std::nullopt;
  // Version 00 has nothing more; later ones may, behind another separator.
  if (traceparent.size() > kLength && (version == "00" || traceparent[kLength] != '-')) {
    return std::nullopt;
  }
  return TraceContext{.trace_id = std::string(trace_id), .span_id = std::string(span_id)};
}

std::optional<TraceContext> TraceContext::Of(const grpc::ServerContextBase& context) {
  const auto [begin, end] = context.client_metadata().equal_range("traceparent");
  if (begin == end || std::next(begin) != end) return std::nullopt;
  return Parse(std::string_view(begin->second.data(), begin->second.size()));
}

}  // namespace cipherd::server
