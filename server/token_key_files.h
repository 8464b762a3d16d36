// The keys of tenants' tokens as their files hold them now: keys rotate without a restart.
//
//   CIPHERD_ASSIGN_OR_RETURN(auto files, TokenKeyFiles::Open(path, on_read));
//   const std::shared_ptr<const TokenKeys> keys = files->Current();
//   ... every second ...
//   files->Look();
//
// All keys that are there are in force together, or those that were before: where any file is
// damaged the former keys stay, all of them, and the log says why. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "core/base/file_state.h"
#include "server/token_keys.h"

namespace cipherd::server {

class TokenKeyFiles {
 public:
  // Whether what the files hold is in force. Called each time that they were read.
  using OnRead = std::function<void(bool is_in_force)>;

  // Errors as TokenKeys::Read's. `on_read` may be null.
  static absl::StatusOr<std::unique_ptr<TokenKeyFiles>> Open(std::string path,
                                                             OnRead on_read = nullptr);

  // Never null.
  std::shared_ptr<const TokenKeys> Current() const ABSL_LOCKS_EXCLUDED(mu_);

  // Reads the files again where one has changed, has come or has gone. Blocks on them; for one
  // thread at a time.
  void Look() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using FileStates = std::map<std::string, base::FileState>;

  TokenKeyFiles(std::string path, OnRead on_read)
      : path_(std::move(path)), on_read_(std::move(on_read)) {}

  FileStates LookAtFiles() const;

  const std::string path_;
  const OnRead on_read_;
  // Of Look alone. Empty where what they hold was not taken: it is read again at the next look.
  FileStates seen_;
  // Why the latest was not taken; empty where it was.
  std::string told_;

  mutable absl::Mutex mu_;
  std::shared_ptr<const TokenKeys> current_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cipherd::server
