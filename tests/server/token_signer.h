// Signs tokens as an authority would: header and claims are whatever the test says, and nothing of
// the library that verifies them is used.
//
//   const TokenSigner signer(TokenSigner::Kind::kP256);
//   WriteFile(directory / "k1.pem", signer.PublicPem());
//   const std::string token = signer.Sign(R"({"alg":"ES256","kid":"k1"})", R"({"sub":"alice"})");
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "openssl/evp.h"
#include "server/openssl_handles.h"

namespace cipherd::server::testing {

// Without padding.
std::string Base64Url(std::string_view bytes);

// What is signed: both parts, each in base64url.
std::string SigningInput(std::string_view header, std::string_view claims);

class TokenSigner {
 public:
  enum class Kind : uint8_t { kRsa1024, kRsa2048, kP256, kP384, kP521, kSecp256k1, kEd25519 };

  // A new key.
  explicit TokenSigner(Kind kind);

  std::string PublicPem() const;
  std::string PrivatePem() const;

  // By SHA-384 or SHA-512 where the header has 384 or 512 in it, else by SHA-256.
  std::string Sign(std::string_view header, std::string_view claims) const;

 private:
  KeyPtr key_;
};

// By HMAC with SHA-256, as algorithm HS256 does.
std::string SignWithSecret(std::string_view header, std::string_view claims,
                           const std::string& secret);

}  // namespace cipherd::server::testing
