// Whose a token is, by the keys and the time of now.
//
//   TokenVerifier verifier(options.tokens, key_files, clock);
//   CIPHERD_ASSIGN_OR_RETURN(const std::string tenant, verifier.TenantOf(text));
//
// Clients send a token with many calls: what a key has signed is remembered, by its hash, for as
// long as the keys are the same, and only its times are looked at again. Strangers fill nothing.
// Thread-safe.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "core/base/clock.h"
#include "core/base/sha256.h"
#include "server/options.h"
#include "server/token.h"
#include "server/token_key_files.h"

namespace cipherd::server {

class TokenVerifier {
 public:
  // Beyond it all are forgotten: some 400 bytes each.
  static constexpr size_t kMaxRemembered = 4096;

  // `keys` and `clock` outlive this.
  TokenVerifier(TokenOptions options, const TokenKeyFiles& keys, const base::Clock& clock)
      : options_(std::move(options)), keys_(keys), clock_(clock) {}

  // Errors as VerifyToken's and Token::CheckTime's.
  absl::StatusOr<std::string> TenantOf(std::string_view text) ABSL_LOCKS_EXCLUDED(mu_);

  size_t remembered() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  absl::StatusOr<Token> Verified(std::string_view text) ABSL_LOCKS_EXCLUDED(mu_);

  const TokenOptions options_;
  const TokenKeyFiles& keys_;
  const base::Clock& clock_;

  mutable absl::Mutex mu_;
  // Those that `tokens_` were verified with.
  std::shared_ptr<const TokenKeys> keys_of_tokens_ ABSL_GUARDED_BY(mu_);
  std::map<base::Sha256Digest, Token> tokens_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cipherd::server
