#include "server/caller.h"

#include <iterator>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "grpc/grpc_security_constants.h"
#include "grpc/support/time.h"
#include "grpcpp/security/auth_context.h"
#include "proto/grpc_status/transport.h"

namespace cipherd::server {
namespace {

constexpr char kAuthorization[] = "authorization";
constexpr std::string_view kScheme = "Bearer ";

std::string TenantOfCertificate(const grpc::ServerContextBase& context) {
  const std::shared_ptr<const grpc::AuthContext> auth = context.auth_context();
  if (auth == nullptr || !auth->IsPeerAuthenticated()) return "local";
  const std::string property = auth->GetPeerIdentityPropertyName();
  const std::vector<grpc::string_ref> names = auth->GetPeerIdentity();
  if (names.empty()) return "local";
  const char* kind = property == GRPC_X509_SAN_PROPERTY_NAME  ? "x509-san:"
                     : property == GRPC_X509_CN_PROPERTY_NAME ? "x509-cn:"
                                                              : "other:";
  return absl::StrCat(kind, std::string(names[0].data(), names[0].size()));
}

// Of the one authorization that the call has.
absl::StatusOr<std::string_view> BearerToken(const grpc::ServerContextBase& context) {
  const auto [begin, end] = context.client_metadata().equal_range(kAuthorization);
  if (begin == end) return Unauthenticated("expected 'Bearer' and a token, got none");
  // Which of them would count?
  if (std::next(begin) != end) return Unauthenticated("expected one, got several");
  const std::string_view text(begin->second.data(), begin->second.size());
  const std::string_view scheme = text.substr(0, kScheme.size());
  if (!absl::EqualsIgnoreCase(std::string(scheme), std::string(kScheme))) {
    return Unauthenticated("expected 'Bearer' and a token, got another scheme");
  }
  return text.substr(kScheme.size());
}

}  // namespace

absl::StatusOr<Caller> Callers::Identify(const grpc::ServerContextBase& context) const {
  Caller caller{.tenant = "", .deadline = absl::InfiniteFuture(), .routed_by = ""};
  if (tokens_ == nullptr) {
    caller.tenant = TenantOfCertificate(context);
  } else {
    CIPHERD_ASSIGN_OR_RETURN(const std::string_view token, BearerToken(context));
    CIPHERD_ASSIGN_OR_RETURN(caller.tenant, tokens_->TenantOf(token));
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
