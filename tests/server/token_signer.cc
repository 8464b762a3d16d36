#include "tests/server/token_signer.h"

#include <memory>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "openssl/ec.h"
#include "openssl/hmac.h"
#include "openssl/pem.h"
#include "openssl/rsa.h"

namespace cipherd::server::testing {
namespace {

KeyPtr NewKey(TokenSigner::Kind kind) {
  using Kind = TokenSigner::Kind;
  switch (kind) {
    case Kind::kRsa1024:
      return KeyPtr(EVP_RSA_gen(1024));
    case Kind::kRsa2048:
      return KeyPtr(EVP_RSA_gen(2048));
    case Kind::kP256:
      return KeyPtr(EVP_EC_gen("P-256"));
    case Kind::kP384:
      return KeyPtr(EVP_EC_gen("P-384"));
    case Kind::kP521:
      return KeyPtr(EVP_EC_gen("P-521"));
    case Kind::kSecp256k1:
      return KeyPtr(EVP_EC_gen("secp256k1"));
    case Kind::kEd25519:
      return KeyPtr(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  }
  return nullptr;
}

std::string Take(BIO* bio) {
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(bio, &bytes);
  return std::string(bytes, static_cast<size_t>(size));
}

// JOSE writes both numbers of an ECDSA signature one after the other, as long as the curve's order.
std::string RawEcdsa(const std::string& der, size_t number_bytes) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(der.data());
  const std::unique_ptr<ECDSA_SIG, decltype(&ECDSA_SIG_free)> signature(
      d2i_ECDSA_SIG(nullptr, &bytes, static_cast<long>(der.size())), &ECDSA_SIG_free);
  std::string raw(2 * number_bytes, '\0');
  auto* out = reinterpret_cast<unsigned char*>(raw.data());
  BN_bn2binpad(ECDSA_SIG_get0_r(signature.get()), out, static_cast<int>(number_bytes));
  BN_bn2binpad(ECDSA_SIG_get0_s(signature.get()), out + number_bytes,
               static_cast<int>(number_bytes));
  return raw;
}

}  // namespace

std::string Base64Url(std::string_view bytes) {
  std::string text;
  absl::WebSafeBase64Escape(std::string(bytes), &text);
  return text;
}

std::string SigningInput(std::string_view header, std::string_view claims) {
  return absl::StrCat(Base64Url(header), ".", Base64Url(claims));
}

TokenSigner::TokenSigner(Kind kind) : key_(NewKey(kind)) {}

std::string TokenSigner::PublicPem() const {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_PUBKEY(bio.get(), key_.get());
  return Take(bio.get());
}

std::string TokenSigner::PrivatePem() const {
  const BioPtr bio(BIO_new(BIO_s_mem()));
  PEM_write_bio_PrivateKey(bio.get(), key_.get(), nullptr, nullptr, 0, nullptr, nullptr);
  return Take(bio.get());
}

std::string TokenSigner::Sign(std::string_view header, std::string_view claims) const {
  const EVP_MD* hash = header.find("384") != header.npos   ? EVP_sha384()
                       : header.find("512") != header.npos ? EVP_sha512()
                                                           : EVP_sha256();
  const std::string input = SigningInput(header, claims);
  const auto* bytes = reinterpret_cast<const unsigned char*>(input.data());
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        &EVP_MD_CTX_free);
  EVP_DigestSignInit(context.get(), nullptr, hash, nullptr, key_.get());
  size_t size = 0;
  EVP_DigestSign(context.get(), nullptr, &size, bytes, input.size());
  std::string signature(size, '\0');
  EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size, bytes,
                 input.size());
  signature.resize(size);
  if (EVP_PKEY_is_a(key_.get(), "EC") == 1) {
    signature = RawEcdsa(signature, static_cast<size_t>(EVP_PKEY_get_bits(key_.get()) + 7) / 8);
  }
  return absl::StrCat(input, ".", Base64Url(signature));
}

std::string SignWithSecret(std::string_view header, std::string_view claims,
                           const std::string& secret) {
  const std::string input = SigningInput(header, claims);
  std::string signature(EVP_MAX_MD_SIZE, '\0');
  unsigned int size = 0;
  HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
       reinterpret_cast<const unsigned char*>(input.data()), input.size(),
       reinterpret_cast<unsigned char*>(signature.data()), &size);
  signature.resize(size);
  return absl::StrCat(input, ".", Base64Url(signature));
}

}  // namespace cipherd::server::testing
