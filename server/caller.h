// Who calls, until when, and by which way.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "grpcpp/server_context.h"

namespace cipherd::server {

// The tenant of a caller with a certificate is the first alternative name in it (of any kind: DNS,
// URI, e-mail, address) as "x509-san:<name>", or, where it has none, the common name of its subject
// as "x509-cn:<name>". The two never meet: a certificate that has "alice" as common name is not the
// tenant whose alternative name is "alice". Further names do not matter, so an authority that
// issues several in a certificate puts the tenant's first. Without a certificate the tenant is
// "local".
struct Caller {
  std::string tenant;
  // absl::InfiniteFuture() where the client set none.
  absl::Time deadline;
  // By which a gateway has found this daemon (transport::kKeySetMetadata); empty without.
  std::string routed_by;

  static Caller Of(const grpc::ServerContextBase& context);
};

}  // namespace cipherd::server
