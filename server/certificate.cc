#include "server/certificate.h"

#include <algorithm>
#include <ctime>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "openssl/asn1.h"
#include "openssl/err.h"
#include "openssl/pem.h"
#include "server/openssl_handles.h"

namespace cipherd::server {
namespace {

CertificatePtr ReadCertificate(BIO* bio) {
  return CertificatePtr(PEM_read_bio_X509(bio, nullptr, nullptr, nullptr));
}

absl::Status Refuse(std::string_view file, std::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("listen.tls: ", std::string(file), ": expected ", std::string(what)));
}
absl::Status NoCertificate(std::string_view file, std::string_view what) {
  return Refuse(file, absl::StrCat("PEM certificates, got ", std::string(what)));
}

}  // namespace

absl::StatusOr<absl::Time> EarliestExpiry(const std::string& pem, std::string_view file) {
  const BioPtr bio = OpenBytes(pem);
  absl::Time earliest = absl::InfiniteFuture();
  while (const CertificatePtr certificate = ReadCertificate(bio.get())) {
    std::tm end = {};
    if (ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &end) != 1) {
      return NoCertificate(file, "one without an end");
    }
    earliest = std::min(earliest, absl::FromTM(end, absl::UTCTimeZone()));
  }
  // The end of the file is an error, too: that no further certificate begins.
  const bool is_at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (!is_at_end) return NoCertificate(file, "one that is damaged");
  if (earliest == absl::InfiniteFuture()) return NoCertificate(file, "none");
  return earliest;
}

absl::Status CheckKeyOfCertificate(const std::string& certificate_pem,
                                   std::string_view certificate_file, const std::string& key_pem,
                                   std::string_view key_file) {
  const CertificatePtr certificate = ReadCertificate(OpenBytes(certificate_pem).get());
  const KeyPtr key(
      PEM_read_bio_PrivateKey(OpenBytes(key_pem).get(), nullptr, &NoPassphrase, nullptr));
  const bool is_its_own = certificate != nullptr && key != nullptr &&
                          X509_check_private_key(certificate.get(), key.get()) == 1;
  ERR_clear_error();
  if (certificate == nullptr) return NoCertificate(certificate_file, "none");
  if (key == nullptr) return Refuse(key_file, "a PEM private key without a passphrase");
  if (!is_its_own) {
    return Refuse(key_file, absl::StrCat("the private key of the certificate in ",
                                         std::string(certificate_file), ", got another one"));
  }
  return absl::OkStatus();
}

}  // namespace cipherd::server
