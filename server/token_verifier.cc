#include "server/token_verifier.h"

#include "core/base/status_macros.h"

namespace cipherd::server {

absl::StatusOr<std::string> TokenVerifier::TenantOf(std::string_view text) {
  CIPHERD_ASSIGN_OR_RETURN(const Token token, Verified(text));
  CIPHERD_RETURN_IF_ERROR(token.CheckTime(clock_.Now(), options_.leeway));
  return token.tenant;
}

absl::StatusOr<Token> TokenVerifier::Verified(std::string_view text) {
  base::Sha256 hash;
  hash.Update(text.data(), text.size());
  const base::Sha256Digest digest = hash.Finish();
  const std::shared_ptr<const TokenKeys> keys = keys_.Current();
  {
    absl::MutexLock lock(&mu_);
    if (keys_of_tokens_ != keys) {
      tokens_.clear();
      keys_of_tokens_ = keys;
    }
    const auto found = tokens_.find(digest);
    if (found != tokens_.end()) return found->second;
  }
  CIPHERD_ASSIGN_OR_RETURN(Token token, VerifyToken(text, *keys, options_));
  absl::MutexLock lock(&mu_);
  // Not where the keys have changed while it was verified.
  if (keys_of_tokens_ == keys) {
    if (tokens_.size() >= kMaxRemembered) tokens_.clear();
    tokens_.insert_or_assign(digest, token);
  }
  return token;
}

size_t TokenVerifier::remembered() const {
  absl::MutexLock lock(&mu_);
  return tokens_.size();
}

}  // namespace cipherd::server
