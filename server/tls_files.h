// The daemon's certificates, as its files hold them now: renewed ones take effect for who connects
// next, without a restart.
//
//   CIPHERD_ASSIGN_OR_RETURN(auto files, TlsFiles::Open(options.listen.tls, clock));
//   builder.AddListeningPort(address, MakeCredentials(files.get()), &port);   // transport.h
//
// What changes is checked before it is taken: a key that is not the certificate's (one of the two
// has been replaced, the other not yet), a damaged file, a certificate that has ended. Until the
// files are whole again what was taken last serves on, and the log says why. Thread-safe.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/clock.h"
#include "core/base/file_state.h"
#include "server/options.h"

namespace cipherd::server {

// PEM texts, checked together.
struct TlsMaterial {
  std::string certificate_chain;
  std::string private_key;
  // Empty: clients present none.
  std::string client_ca;
  // When the first certificate of each ends; that of the CA only where there is one.
  absl::Time certificate_expiry;
  absl::Time client_ca_expiry;

  // NotFound for a file that cannot be read; InvalidArgument for one that is damaged or a key that
  // is not the certificate's; FailedPrecondition for a certificate of the daemon's that has ended.
  // Each names the file.
  static absl::StatusOr<TlsMaterial> Read(const TlsOptions& options, absl::Time now);
};

class TlsFiles {
 public:
  // Requires TLS to be enabled; `clock` outlives this. Errors as TlsMaterial::Read's. `on_taken` is
  // called with whatever is taken from then on, first of all before this returns; may be null.
  static absl::StatusOr<std::unique_ptr<TlsFiles>> Open(
      TlsOptions options, const base::Clock& clock,
      std::function<void(const TlsMaterial&)> on_taken = nullptr);

  bool has_client_ca() const { return !options_.client_ca_file.empty(); }

  // What is there to be used and has not been returned before: at first what Open read, later what
  // the files hold where they have changed. Looks at them at most once a second. Reads files.
  std::optional<TlsMaterial> TakeNew() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using FileStates = std::array<base::FileState, 3>;

  TlsFiles(TlsOptions options, const base::Clock& clock,
           std::function<void(const TlsMaterial&)> on_taken)
      : options_(std::move(options)), clock_(clock), on_taken_(std::move(on_taken)) {}

  FileStates LookAtFiles() const;

  const TlsOptions options_;
  const base::Clock& clock_;
  const std::function<void(const TlsMaterial&)> on_taken_;

  absl::Mutex mu_;
  std::optional<TlsMaterial> pending_ ABSL_GUARDED_BY(mu_);
  FileStates seen_ ABSL_GUARDED_BY(mu_);
  absl::Time looked_at_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cipherd::server
