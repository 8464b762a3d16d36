// Who calls, until when, and by which way.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "grpcpp/server_context.h"
#include "server/token_verifier.h"

namespace cipherd::server {

// The tenant of a caller with a certificate is the first alternative name in it (of any kind: DNS,
// URI, e-mail, address) as "x509-san:<name>", or, where it has none, the common name of its subject
// as "x509-cn:<name>". The two never meet: a certificate that has "alice" as common name is not the
// tenant whose alternative name is "alice". Further names do not matter, so an authority that
// issues several in a certificate puts the tenant's first. Without a certificate the tenant is
// "local".
//
// Where the daemon has keys of tokens, it is the token alone that names the tenant ("token:…",
// token.h), and a caller without one is nobody: a certificate beside it may be a gateway's.
struct Caller {
  std::string tenant;
  // absl::InfiniteFuture() where the client set none.
  absl::Time deadline;
  // By which a gateway has found this daemon (transport::kKeySetMetadata); empty without.
  std::string routed_by;
};

// Tells who calls. Every call of a tenant's asks once, when it begins: one that has begun goes on
// to its own deadline when its token has ended. Thread-safe.
class Callers {
 public:
  // From here on callers need a token. `tokens` outlives this. Before the first call.
  void RequireTokens(TokenVerifier& tokens) { tokens_ = &tokens; }
  bool need_tokens() const { return tokens_ != nullptr; }

  // Unauthenticated where a token is needed and there is no good one.
  absl::StatusOr<Caller> Identify(const grpc::ServerContextBase& context) const;

 private:
  TokenVerifier* tokens_ = nullptr;
};

// Who is counted as one caller where there is a bound for each, before anybody looks at a token:
// the tenant by certificate; of those who have none, the address, or network of 64 bits of IPv6.
std::string CallerKey(const grpc::ServerContextBase& context);

// The last of these, of a peer as gRPC writes it: "ipv4:192.0.2.1:33000", "ipv6:%5B::1%5D:33000".
std::string PeerHost(const std::string& peer);

}  // namespace cipherd::server
