// Public keys that tenants' tokens are verified with, as PEM files have them.
//
//   CIPHERD_ASSIGN_OR_RETURN(const TokenKeys keys, TokenKeys::Read("/etc/cipherd/token-keys"));
//   const TokenKey* key = keys.Find("2026-11");      // of /etc/cipherd/token-keys/2026-11.pem
//
// A directory has a file KID.pem for each key, called by the `kid` that tokens name it by; names
// that begin with a dot (Kubernetes puts such beside them) and those without .pem are left alone. A
// file has one key, for every token. Plain values.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/status/statusor.h"

namespace cipherd::server {

struct TokenKey {
  // As OpenSSL writes it, whatever stood around it in the file.
  std::string pem;
  // By their names in JWA (RFC 7518): RS256, RS384 and RS512 of an RSA key, the one of its curve of
  // an EC key. No other algorithm may be used with the key, whatever a token says.
  std::span<const std::string_view> algorithms;
};

class TokenKeys {
 public:
  // More are a mistake.
  static constexpr size_t kMaxKeys = 64;
  static constexpr size_t kMaxFileBytes = 64 << 10;

  // `path` is a file or a directory. NotFound for what cannot be read; InvalidArgument for a file
  // that does not hold exactly one public key, of RSA with 2048 bits or more, P-256, P-384 or
  // P-521, and for a directory without keys. Each names the file.
  static absl::StatusOr<TokenKeys> Read(const std::string& path);

  // Where Read would read, now: `path` itself, or the files of the directory.
  // `error` says where not all of them could be told.
  static std::vector<std::string> Files(const std::string& path, std::error_code& error);

  // The key that a token of this `kid` is signed with; one without means the only key there is.
  // Null where there is none, or none without doubt.
  const TokenKey* Find(std::optional<std::string_view> kid) const;

  // The names of the keys, for the log; that of a lone file is empty.
  std::vector<std::string> names() const;

 private:
  std::map<std::string, TokenKey, std::less<>> keys_;
  // Those of a directory. A lone file's key has no name, and is every token's.
  bool are_named_ = false;
};

}  // namespace cipherd::server
