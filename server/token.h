// One token of a tenant's, verified: a JWT (RFC 7519), signed (RFC 7515) by one of the daemon's
// keys.
//
//   CIPHERD_ASSIGN_OR_RETURN(const Token token, VerifyToken(text, keys, options));
//   CIPHERD_RETURN_IF_ERROR(token.CheckTime(now, options.leeway));
//
// libjwt reads the token and verifies the signature. What it leaves open is closed here: it
// verifies by whatever algorithm the token names, also HS256 with the public key for a secret, or
// none at all, any hash with any curve, and takes extensions that it does not know (`crit`). No
// message has anything of the token in it, but for times of one whose signature is good.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/options.h"
#include "server/token_keys.h"

namespace cipherd::server {

// Nothing longer is looked at. gRPC takes no more of all metadata of a call, either.
inline constexpr size_t kMaxTokenBytes = 8192;
// Of the claim that names the tenant: what OpenID Connect allows a subject.
inline constexpr size_t kMaxTenantClaimBytes = 255;

struct Token {
  // "token:<issuer>#<claim>": never the name of a tenant by certificate, nor "local". An issuer has
  // no '#', so that no two pairs make one name.
  std::string tenant;
  // absl::InfinitePast() for a token without.
  absl::Time not_before;
  absl::Time expiry;

  // Unauthenticated where the token has ended, or not begun.
  absl::Status CheckTime(absl::Time now, absl::Duration leeway) const;
};

// Everything but times. Unauthenticated naming the claim at fault. Costs 0.3 ms of a core (RS256)
// to 1.1 ms (ES384), most of it OpenSSL's to read the key, which the library asks for each time:
// token_verifier.h remembers.
absl::StatusOr<Token> VerifyToken(std::string_view text, const TokenKeys& keys,
                                  const TokenOptions& options);

// What a refused caller is told: `what` of its authorization is wrong.
absl::Status Unauthenticated(std::string_view what);

}  // namespace cipherd::server
