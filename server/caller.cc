#include "server/caller.h"

#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpc/grpc_security_constants.h"
#include "grpc/support/time.h"
#include "grpcpp/security/auth_context.h"
#include "proto/grpc_status/transport.h"

namespace cipherd::server {

Caller Caller::Of(const grpc::ServerContextBase& context) {
  Caller caller{.tenant = "local", .deadline = absl::InfiniteFuture(), .routed_by = ""};
  const std::shared_ptr<const grpc::AuthContext> auth = context.auth_context();
  if (auth != nullptr && auth->IsPeerAuthenticated()) {
    const std::string property = auth->GetPeerIdentityPropertyName();
    const std::vector<grpc::string_ref> names = auth->GetPeerIdentity();
    if (!names.empty()) {
      const char* kind = property == GRPC_X509_SAN_PROPERTY_NAME  ? "x509-san:"
                         : property == GRPC_X509_CN_PROPERTY_NAME ? "x509-cn:"
                                                                  : "other:";
      caller.tenant = absl::StrCat(kind, std::string(names[0].data(), names[0].size()));
    }
  }
  // As a time_point a far deadline would overflow into the past.
  const gpr_timespec deadline = gpr_convert_clock_type(context.raw_deadline(), GPR_CLOCK_REALTIME);
  if (gpr_time_cmp(deadline, gpr_inf_future(GPR_CLOCK_REALTIME)) != 0) {
    caller.deadline = absl::FromUnixSeconds(deadline.tv_sec) + absl::Nanoseconds(deadline.tv_nsec);
  }
  const auto routed_by = context.client_metadata().find(transport::kKeySetMetadata);
  if (routed_by != context.client_metadata().end()) {
    caller.routed_by.assign(routed_by->second.data(), routed_by->second.size());
  }
  return caller;
}

}  // namespace cipherd::server
