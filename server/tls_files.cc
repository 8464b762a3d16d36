#include "server/tls_files.h"

#include <fstream>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "server/certificate.h"
#include "spdlog/spdlog.h"

namespace cipherd::server {
namespace {

constexpr absl::Duration kLookInterval = absl::Seconds(1);

absl::StatusOr<std::string> ReadPem(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat("listen.tls: cannot read ", path));
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text.empty()) return absl::InvalidArgumentError(absl::StrCat("listen.tls: empty: ", path));
  return text;
}

}  // namespace

absl::StatusOr<TlsMaterial> TlsMaterial::Read(const TlsOptions& options, absl::Time now) {
  TlsMaterial material;
  CIPHERD_ASSIGN_OR_RETURN(material.certificate_chain, ReadPem(options.certificate_file));
  CIPHERD_ASSIGN_OR_RETURN(material.private_key, ReadPem(options.key_file));
  CIPHERD_ASSIGN_OR_RETURN(material.certificate_expiry,
                           EarliestExpiry(material.certificate_chain, options.certificate_file));
  CIPHERD_RETURN_IF_ERROR(CheckKeyOfCertificate(material.certificate_chain,
                                                options.certificate_file, material.private_key,
                                                options.key_file));
  if (!options.client_ca_file.empty()) {
    CIPHERD_ASSIGN_OR_RETURN(material.client_ca, ReadPem(options.client_ca_file));
    CIPHERD_ASSIGN_OR_RETURN(material.client_ca_expiry,
                             EarliestExpiry(material.client_ca, options.client_ca_file));
  }
  if (material.certificate_expiry <= now) {
    return absl::FailedPreconditionError(absl::StrCat(
        "listen.tls: ", options.certificate_file, ": a certificate has ended at ",
        absl::FormatTime(absl::RFC3339_sec, material.certificate_expiry, absl::UTCTimeZone())));
  }
  return material;
}

absl::StatusOr<std::unique_ptr<TlsFiles>> TlsFiles::Open(
    TlsOptions options, const base::Clock& clock,
    std::function<void(const TlsMaterial&)> on_taken) {
  std::unique_ptr<TlsFiles> files(new TlsFiles(std::move(options), clock, std::move(on_taken)));
  absl::MutexLock lock(&files->mu_);
  // Before they are read: what changes meanwhile is read again.
  files->seen_ = files->LookAtFiles();
  files->looked_at_ = clock.Now();
  CIPHERD_ASSIGN_OR_RETURN(files->pending_, TlsMaterial::Read(files->options_, files->looked_at_));
  if (files->on_taken_) files->on_taken_(*files->pending_);
  return files;
}

TlsFiles::FileStates TlsFiles::LookAtFiles() const {
  FileStates states;
  size_t i = 0;
  for (const std::string* file :
       {&options_.certificate_file, &options_.key_file, &options_.client_ca_file}) {
    states[i++] = base::FileState::Of(*file);
  }
  return states;
}

std::optional<TlsMaterial> TlsFiles::TakeNew() {
  absl::MutexLock lock(&mu_);
  if (pending_.has_value()) return std::exchange(pending_, std::nullopt);
  const absl::Time now = clock_.Now();
  // Also where the clock has been set back.
  if (now >= looked_at_ && now - looked_at_ < kLookInterval) return std::nullopt;
  looked_at_ = now;
  const FileStates states = LookAtFiles();
  if (states == seen_) return std::nullopt;
  seen_ = states;
  absl::StatusOr<TlsMaterial> material = TlsMaterial::Read(options_, now);
  if (!material.ok()) {
    spdlog::error("certificates have changed and are not taken, the former ones serve on: {}",
                  std::string(material.status().message()));
    return std::nullopt;
  }
  spdlog::info(
      "certificates have changed: {} is good until {}", options_.certificate_file,
      absl::FormatTime(absl::RFC3339_sec, material->certificate_expiry, absl::UTCTimeZone()));
  if (on_taken_) on_taken_(*material);
  return *std::move(material);
}

}  // namespace cipherd::server
