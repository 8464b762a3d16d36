#include "client/bearer_token.h"

#include <algorithm>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace cipherd::client {
namespace {

// gRPC, as daemon and proxies have it, takes no more of all metadata of a call.
constexpr size_t kMaxBytes = 8192;

// gRPC ends the process where it is told to send what no header may hold.
absl::Status Check(const std::string& token, const std::string& name) {
  if (token.size() > kMaxBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": expected a token of at most ", kMaxBytes, " bytes, got more"));
  }
  if (!std::all_of(token.begin(), token.end(), absl::ascii_isgraph)) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ": expected a token of printable characters without spaces"));
  }
  return absl::OkStatus();
}

// The first line of the file.
absl::StatusOr<std::string> ReadToken(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string bytes(kMaxBytes + 2, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  bytes.resize(static_cast<size_t>(file.gcount()));
  const std::string token(absl::StripAsciiWhitespace(bytes.substr(0, bytes.find('\n'))));
  if (token.empty()) {
    return absl::NotFoundError(absl::StrCat("cannot read a token from '", path, "'"));
  }
  CIPHERD_RETURN_IF_ERROR(Check(token, path));
  return token;
}

}  // namespace

absl::StatusOr<std::unique_ptr<BearerToken>> BearerToken::Open(const ClientOptions& options) {
  const std::string& file = options.bearer_token_file;
  std::string token = options.bearer_token;
  base::FileState seen;
  if (file.empty()) {
    CIPHERD_RETURN_IF_ERROR(Check(token, "bearer_token"));
  } else {
    if (!token.empty()) {
      return absl::InvalidArgumentError(
          "bearer_token: expected none beside bearer_token_file, got one");
    }
    // Before it is read: what changes meanwhile is read again.
    seen = base::FileState::Of(file);
    CIPHERD_ASSIGN_OR_RETURN(token, ReadToken(file));
  }
  return std::unique_ptr<BearerToken>(new BearerToken(file, seen, std::move(token)));
}

std::string BearerToken::Current() {
  absl::MutexLock lock(&mu_);
  if (file_.empty()) return token_;
  const base::FileState state = base::FileState::Of(file_);
  if (state == seen_) return token_;
  seen_ = state;
  absl::StatusOr<std::string> token = ReadToken(file_);
  if (token.ok()) token_ = *std::move(token);
  return token_;
}

}  // namespace cipherd::client
