#include "server/caller.h"

#include <chrono>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpcpp/security/auth_context.h"

namespace cipherd::server {

Caller Caller::Of(const grpc::ServerContextBase& context) {
  Caller caller{.tenant = "local", .deadline = absl::InfiniteFuture()};
  const std::shared_ptr<const grpc::AuthContext> auth = context.auth_context();
  if (auth != nullptr && auth->IsPeerAuthenticated()) {
    // A certificate can carry several names; the first is the tenant. The prefix keeps a
    // certificate for "local" apart from callers without one.
    const std::vector<grpc::string_ref> names = auth->GetPeerIdentity();
    if (!names.empty()) {
      caller.tenant = absl::StrCat("x509:", std::string(names[0].data(), names[0].size()));
    }
  }
  const std::chrono::system_clock::time_point deadline = context.deadline();
  if (deadline != std::chrono::system_clock::time_point::max()) {
    caller.deadline = absl::FromChrono(deadline);
  }
  return caller;
}

}  // namespace cipherd::server
