// Who calls, and until when.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "grpcpp/server_context.h"

namespace cipherd::server {

struct Caller {
  // The peer's authenticated identity as "x509:<name>", or "local" where there is none.
  std::string tenant;
  // absl::InfiniteFuture() where the client set none.
  absl::Time deadline;

  static Caller Of(const grpc::ServerContextBase& context);
};

}  // namespace cipherd::server
