// Owners of what OpenSSL hands out, for those who read PEM.
#pragma once

#include <memory>
#include <string>

#include "openssl/bio.h"
#include "openssl/evp.h"
#include "openssl/x509.h"

namespace cipherd::server {

struct FreeOpenSsl {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using BioPtr = std::unique_ptr<BIO, FreeOpenSsl>;
using CertificatePtr = std::unique_ptr<X509, FreeOpenSsl>;
using KeyPtr = std::unique_ptr<EVP_PKEY, FreeOpenSsl>;

// Reads the bytes, which outlive it.
inline BioPtr OpenBytes(const std::string& pem) {
  return BioPtr(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

// Asked for the passphrase of a key: there is none, and nobody at a terminal is asked.
inline int NoPassphrase(char*, int, int, void*) { return 0; }

}  // namespace cipherd::server
