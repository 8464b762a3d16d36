// A tenant's token as it came. Where the bytes begin with a brace they are, up to the first line's
// end, a header, and after it claims, which the target signs: what comes after a good signature is
// looked at, too.
#include <algorithm>

#include "absl/strings/ascii.h"
#include "server/token.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/programs/temporary_directory.h"
#include "tests/server/token_signer.h"

namespace cipherd::fuzz {
namespace {

using server::testing::TokenSigner;

const TokenSigner& Signer() {
  static const auto& signer = *new TokenSigner(TokenSigner::Kind::kP256);
  return signer;
}

const server::TokenKeys& Keys() {
  static const auto& keys = *new server::TokenKeys([] {
    const programs::TemporaryDirectory directory;
    directory.Write("k1.pem", Signer().PublicPem());
    directory.Write("k2.pem", TokenSigner(TokenSigner::Kind::kRsa2048).PublicPem());
    return server::TokenKeys::Read(directory.path()).value();
  }());
  return keys;
}

}  // namespace

bool Decode(std::string_view bytes) {
  static const auto& options =
      *new server::TokenOptions{.keys = "k", .issuer = "idp", .audience = "cipherd"};
  const bool is_signed_here = bytes.starts_with('{');
  const size_t line = std::min(bytes.find('\n'), bytes.size());
  const std::string token =
      is_signed_here
          ? Signer().Sign(bytes.substr(0, line), bytes.substr(std::min(line + 1, bytes.size())))
          : std::string(bytes);
  const auto verified = server::VerifyToken(token, Keys(), options);
  if (!verified.ok()) {
    Require(absl::IsUnauthenticated(verified.status()), "a refusal has its code");
    return Refused(verified.status());
  }
  Require(is_signed_here, "nobody else has the key");
  constexpr std::string_view kPrefix = "token:idp#";
  const std::string& tenant = verified->tenant;
  Require(tenant.starts_with(kPrefix) && tenant.size() > kPrefix.size() &&
              tenant.size() <= kPrefix.size() + server::kMaxTenantClaimBytes,
          "a tenant has a name of its kind");
  Require(std::all_of(tenant.begin(), tenant.end(), absl::ascii_isprint),
          "what goes into the log is printable");
  // Whatever the times are.
  (void)verified->CheckTime(absl::FromUnixSeconds(1000), absl::Seconds(30));
  return true;
}

}  // namespace cipherd::fuzz
