#include "server/token_key_files.h"

#include <system_error>
#include <utility>

#include "absl/strings/str_join.h"
#include "core/base/status_macros.h"
#include "spdlog/spdlog.h"

namespace cipherd::server {
namespace {

void Log(const std::string& path, const TokenKeys& keys) {
  spdlog::info("keys of tokens are those of {}: {}", path, absl::StrJoin(keys.names(), ", "));
}

}  // namespace

absl::StatusOr<std::unique_ptr<TokenKeyFiles>> TokenKeyFiles::Open(std::string path,
                                                                   OnRead on_read) {
  std::unique_ptr<TokenKeyFiles> files(new TokenKeyFiles(std::move(path), std::move(on_read)));
  // Before they are read: what changes meanwhile is read again.
  files->seen_ = files->LookAtFiles();
  CIPHERD_ASSIGN_OR_RETURN(TokenKeys keys, TokenKeys::Read(files->path_));
  Log(files->path_, keys);
  {
    absl::MutexLock lock(&files->mu_);
    files->current_ = std::make_shared<const TokenKeys>(std::move(keys));
  }
  if (files->on_read_) files->on_read_(true);
  return files;
}

TokenKeyFiles::FileStates TokenKeyFiles::LookAtFiles() const {
  FileStates states;
  std::error_code error;
  for (const std::string& file : TokenKeys::Files(path_, error))
    states[file] = base::FileState::Of(file);
  return states;
}

std::shared_ptr<const TokenKeys> TokenKeyFiles::Current() const {
  absl::MutexLock lock(&mu_);
  return current_;
}

void TokenKeyFiles::Look() {
  FileStates states = LookAtFiles();
  if (states == seen_) return;
  seen_ = std::move(states);
  absl::StatusOr<TokenKeys> keys = TokenKeys::Read(path_);
  if (keys.ok()) {
    Log(path_, *keys);
    told_.clear();
    absl::MutexLock lock(&mu_);
    current_ = std::make_shared<const TokenKeys>(*std::move(keys));
  } else {
    // What cannot be read now may be read soon, without a change of the files.
    seen_.clear();
    const std::string message(keys.status().message());
    if (std::exchange(told_, message) != message) {
      spdlog::error("keys of tokens have changed and are not taken, the former ones stay: {}",
                    message);
    }
  }
  if (on_read_) on_read_(keys.ok());
}

}  // namespace cipherd::server
