// A certificate authority for tests: keys and certificates as PEM files in a directory.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "openssl/evp.h"
#include "openssl/x509.h"

namespace cipherd::server::testing {

class TestAuthority {
 public:
  struct Files {
    std::string certificate;
    std::string key;
  };

  // Writes ca.pem into `directory`, which outlives this.
  explicit TestAuthority(std::filesystem::path directory);
  static constexpr long kLifetimeSeconds = 3600;

  std::string ca_file() const { return directory_ / "ca.pem"; }
  // A certificate for `name`, which is both its common name and its DNS name.
  Files Issue(const std::string& name);
  // The same with another common name, or with a common name only, for `lifetime_seconds`.
  Files IssueWithNames(const std::string& common_name, const std::string& alternative_name,
                       long lifetime_seconds = kLifetimeSeconds);

 private:
  struct Free {
    void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
    void operator()(X509* certificate) const { X509_free(certificate); }
  };
  using KeyPtr = std::unique_ptr<EVP_PKEY, Free>;
  using CertificatePtr = std::unique_ptr<X509, Free>;

  CertificatePtr Make(const std::string& name, const std::string& alternative_name, EVP_PKEY* key,
                      bool is_authority, long lifetime_seconds);

  const std::filesystem::path directory_;
  KeyPtr key_;
  CertificatePtr certificate_;
};

}  // namespace cipherd::server::testing
