// The token that goes with every call of a client: a text, or what a file holds by then.
//
//   CIPHERD_ASSIGN_OR_RETURN(const auto token, BearerToken::Open(options));
//   context->AddMetadata("authorization", "Bearer " + token->Current());
//
// Tokens end: whoever renews the file needs to tell nobody. Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "client/client_options.h"
#include "core/base/file_state.h"

namespace cipherd::client {

class BearerToken {
 public:
  // No token where the options have none. NotFound for a file that cannot be read; InvalidArgument
  // for what cannot be a token. Messages have nothing of it in them.
  static absl::StatusOr<std::unique_ptr<BearerToken>> Open(const ClientOptions& options);

  // Empty: none. Looks at the file, and reads it where it has changed; where what it holds is no
  // token, or it is gone, the former one stays.
  std::string Current() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  BearerToken(std::string file, base::FileState seen, std::string token)
      : file_(std::move(file)), seen_(seen), token_(std::move(token)) {}

  const std::string file_;
  absl::Mutex mu_;
  base::FileState seen_ ABSL_GUARDED_BY(mu_);
  std::string token_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cipherd::client
