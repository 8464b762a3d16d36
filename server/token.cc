#include "server/token.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "jwt.h"
#include "nlohmann/json.hpp"
#include "openssl/err.h"

namespace cipherd::server {
namespace {

using Json = nlohmann::json;

struct FreeJwt {
  void operator()(jwt_t* jwt) const { jwt_free(jwt); }
};
using JwtPtr = std::unique_ptr<jwt_t, FreeJwt>;

std::string Show(absl::Time time) {
  return absl::FormatTime(absl::RFC3339_sec, time, absl::UTCTimeZone());
}

absl::Status Expected(std::string_view claim, std::string_view what) {
  return Unauthenticated(absl::StrCat(std::string(claim), ": expected ", std::string(what)));
}

// Three parts that are not empty, of the alphabet of base64url. The library reads up to the first
// zero, and skips what is not of the alphabet.
bool IsCompact(std::string_view text) {
  size_t dots = 0;
  char previous = '.';
  for (const char c : text) {
    if (c == '.') {
      if (previous == '.') return false;
      ++dots;
    } else if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_') {
      return false;
    }
    previous = c;
  }
  return dots == 2 && previous != '.';
}

// Verified by the key, or merely read where that is null. Null where it cannot be.
JwtPtr Decode(const std::string& text, const TokenKey* key) {
  jwt_t* jwt = nullptr;
  const int error =
      key == nullptr
          ? jwt_decode(&jwt, text.c_str(), nullptr, 0)
          : jwt_decode(&jwt, text.c_str(), reinterpret_cast<const unsigned char*>(key->pem.data()),
                       static_cast<int>(key->pem.size()));
  ERR_clear_error();
  return JwtPtr(error == 0 ? jwt : nullptr);
}

// Of what the library has read; takes `text`.
Json ToObject(char* text) {
  const std::unique_ptr<char, decltype(&std::free)> owner(text, &std::free);
  Json object = text == nullptr ? Json() : Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return object.is_object() ? object : Json::object();
}

const std::string* FindText(const Json& object, const std::string& name) {
  const auto found = object.find(name);
  return found == object.end() ? nullptr : found->get_ptr<const std::string*>();
}

// Nothing where the claim is not there, or no time.
std::optional<absl::Time> FindTime(const Json& claims, const std::string& name) {
  const auto found = claims.find(name);
  if (found == claims.end() || !found->is_number()) return std::nullopt;
  // Saturates.
  return absl::UnixEpoch() + absl::Seconds(found->get<double>());
}

bool IsFor(const Json& claims, const std::string& audience) {
  const auto found = claims.find("aud");
  if (found == claims.end()) return false;
  if (!found->is_array()) return *found == audience;
  return std::find(found->begin(), found->end(), audience) != found->end();
}

// The key that `text`, which nobody has vouched for, names, where it may be used as `text` says.
absl::StatusOr<const TokenKey*> FindKey(const std::string& text, const TokenKeys& keys) {
  const JwtPtr unverified = Decode(text, nullptr);
  if (unverified == nullptr) {
    return Unauthenticated("expected a JWT: a header of type JWT and claims, both JSON objects");
  }
  const Json header = ToObject(jwt_get_headers_json(unverified.get(), nullptr));
  if (header.contains("crit")) return Expected("crit", "none");
  const std::string* const kid = FindText(header, "kid");
  if (kid == nullptr && header.contains("kid")) return Expected("kid", "a text");
  const TokenKey* const key =
      keys.Find(kid == nullptr ? std::nullopt : std::optional<std::string_view>(*kid));
  if (key == nullptr) {
    return kid == nullptr ? Expected("kid", "one, since the daemon has several keys, got none")
                          : Expected("kid", "a key that the daemon has, got another");
  }
  const std::string* const algorithm = FindText(header, "alg");
  if (algorithm == nullptr || std::find(key->algorithms.begin(), key->algorithms.end(),
                                        *algorithm) == key->algorithms.end()) {
    return Expected("alg", "one of the key's own kind");
  }
  return key;
}

absl::StatusOr<Token> ReadClaims(const Json& claims, const TokenOptions& options) {
  const std::string* const issuer = FindText(claims, "iss");
  if (issuer == nullptr || *issuer != options.issuer) {
    return Expected("iss", absl::StrCat("'", options.issuer, "'"));
  }
  if (!IsFor(claims, options.audience)) {
    return Expected("aud", absl::StrCat("'", options.audience, "'"));
  }
  const std::optional<absl::Time> expiry = FindTime(claims, "exp");
  if (!expiry.has_value()) return Expected("exp", "a time, got none");
  const std::optional<absl::Time> not_before = FindTime(claims, "nbf");
  if (!not_before.has_value() && claims.contains("nbf")) return Expected("nbf", "a time");
  const std::string* const name = FindText(claims, options.tenant_claim);
  if (name == nullptr || name->empty() || name->size() > kMaxTenantClaimBytes ||
      !std::all_of(name->begin(), name->end(), absl::ascii_isprint)) {
    return Expected(options.tenant_claim,
                    absl::StrCat("1 to ", kMaxTenantClaimBytes, " printable ASCII characters"));
  }
  return Token{.tenant = absl::StrCat("token:", options.issuer, "#", *name),
               .not_before = not_before.value_or(absl::InfinitePast()),
               .expiry = *expiry};
}

}  // namespace

absl::Status Unauthenticated(std::string_view what) {
  return absl::UnauthenticatedError(absl::StrCat("authorization: ", std::string(what)));
}

absl::Status Token::CheckTime(absl::Time now, absl::Duration leeway) const {
  if (now >= expiry + leeway) {
    return Expected("exp", absl::StrCat("after ", Show(now), ", got ", Show(expiry)));
  }
  if (now < not_before - leeway) {
    return Expected("nbf", absl::StrCat("until ", Show(now), ", got ", Show(not_before)));
  }
  return absl::OkStatus();
}

absl::StatusOr<Token> VerifyToken(std::string_view text, const TokenKeys& keys,
                                  const TokenOptions& options) {
  if (text.size() > kMaxTokenBytes) {
    return Unauthenticated(
        absl::StrCat("expected a token of at most ", kMaxTokenBytes, " bytes, got ", text.size()));
  }
  if (!IsCompact(text)) {
    return Unauthenticated("expected a signed JWT: three parts of base64url between two dots");
  }
  const std::string terminated(text);
  CIPHERD_ASSIGN_OR_RETURN(const TokenKey* const key, FindKey(terminated, keys));
  const JwtPtr verified = Decode(terminated, key);
  if (verified == nullptr) return Unauthenticated("the signature is not by the key");
  return ReadClaims(ToObject(jwt_get_grants_json(verified.get(), nullptr)), options);
}

}  // namespace cipherd::server
