// Which trace a call belongs to, as W3C Trace Context (and so OpenTelemetry) passes it on.
//
//   if (const std::optional<TraceContext> trace = TraceContext::Of(context)) {
//     log.Add("trace_id", trace->trace_id);
//   }
//
// The daemon makes no spans: what it notes is the caller's, so that a request's log line is found
// from the caller's trace. What a peer sends is taken only as the standard writes it.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "grpcpp/server_context.h"

namespace cipherd::server {

struct TraceContext {
  // 32 and 16 lower-case hexadecimal digits, not all of them 0.
  std::string trace_id;
  std::string span_id;

  // The value of a `traceparent` header. Nothing where it is malformed, or of version ff; of a
  // version to come, what it has in common with version 00.
  static std::optional<TraceContext> Parse(std::string_view traceparent);
  // From a call's metadata. Nothing where there is none, a malformed one, or several.
  static std::optional<TraceContext> Of(const grpc::ServerContextBase& context);
};

}  // namespace cipherd::server
