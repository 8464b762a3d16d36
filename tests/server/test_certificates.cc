#include "tests/server/test_certificates.h"

#include <cstdio>
#include <utility>

#include "openssl/ec.h"
#include "openssl/pem.h"
#include "openssl/x509v3.h"

namespace cipherd::server::testing {
namespace {

void AddExtension(X509* certificate, X509* issuer, int nid, const std::string& text) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, text.c_str());
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

void WriteCertificate(const std::string& path, X509* certificate) {
  FILE* file = std::fopen(path.c_str(), "w");
  PEM_write_X509(file, certificate);
  std::fclose(file);
}

}  // namespace

TestAuthority::TestAuthority(std::filesystem::path directory)
    : directory_(std::move(directory)), key_(EVP_EC_gen("P-256")) {
  certificate_ =
      Make("cipherd test authority", "", key_.get(), /*is_authority=*/true, kLifetimeSeconds);
  WriteCertificate(ca_file(), certificate_.get());
}

TestAuthority::Files TestAuthority::Issue(const std::string& name) {
  return IssueWithNames(name, name);
}

TestAuthority::Files TestAuthority::IssueWithNames(const std::string& common_name,
                                                   const std::string& alternative_name,
                                                   long lifetime_seconds) {
  const std::string name = common_name + "-" + alternative_name;
  const Files files = {.certificate = directory_ / (name + ".pem"),
                       .key = directory_ / (name + ".key")};
  const KeyPtr key(EVP_EC_gen("P-256"));
  WriteCertificate(files.certificate, Make(common_name, alternative_name, key.get(),
                                           /*is_authority=*/false, lifetime_seconds)
                                          .get());
  FILE* file = std::fopen(files.key.c_str(), "w");
  PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  std::fclose(file);
  return files;
}

TestAuthority::CertificatePtr TestAuthority::Make(const std::string& name,
                                                  const std::string& alternative_name,
                                                  EVP_PKEY* key, bool is_authority,
                                                  long lifetime_seconds) {
  static long serial = 0;
  CertificatePtr certificate(X509_new());
  X509* const raw = certificate.get();
  X509_set_version(raw, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(raw), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(raw), -3600);
  X509_gmtime_adj(X509_getm_notAfter(raw), lifetime_seconds);
  X509_set_pubkey(raw, key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(raw), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509* const issuer = is_authority ? raw : certificate_.get();
  X509_set_issuer_name(raw, X509_get_subject_name(issuer));
  if (is_authority) {
    AddExtension(raw, issuer, NID_basic_constraints, "critical,CA:TRUE");
  } else if (!alternative_name.empty()) {
    AddExtension(raw, issuer, NID_subject_alt_name, "DNS:" + alternative_name);
  }
  X509_sign(raw, key_.get(), EVP_sha256());
  return certificate;
}

}  // namespace cipherd::server::testing
