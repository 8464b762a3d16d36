#include "server/certificate.h"

#include <algorithm>
#include <ctime>
#include <memory>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "openssl/asn1.h"
#include "openssl/bio.h"
#include "openssl/err.h"
#include "openssl/pem.h"
#include "openssl/x509.h"

namespace cipherd::server {
namespace {

struct Free {
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
};

absl::Status NoCertificate(const std::string& file, std::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("listen.tls: ", file, ": expected PEM certificates, got ", std::string(what)));
}

}  // namespace

absl::StatusOr<absl::Time> EarliestExpiry(const std::string& pem_file) {
  const std::unique_ptr<BIO, Free> bio(BIO_new_file(pem_file.c_str(), "r"));
  if (bio == nullptr) {
    ERR_clear_error();
    return absl::NotFoundError(absl::StrCat("listen.tls: cannot read ", pem_file));
  }
  absl::Time earliest = absl::InfiniteFuture();
  while (true) {
    const std::unique_ptr<X509, Free> certificate(
        PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
    if (certificate == nullptr) break;
    std::tm end = {};
    if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &end) != 1) {
      return NoCertificate(pem_file, "one without an end");
    }
    earliest = std::min(earliest, absl::FromTM(end, absl::UTCTimeZone()));
  }
  // The end of the file is an error, too: that no further certificate begins.
  const bool is_at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (!is_at_end) return NoCertificate(pem_file, "one that is damaged");
  if (earliest == absl::InfiniteFuture()) return NoCertificate(pem_file, "none");
  return earliest;
}

}  // namespace cipherd::server
