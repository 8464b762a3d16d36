#include "server/caller.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "grpc/grpc_security_constants.h"
#include "grpc/support/time.h"
#include "grpcpp/security/auth_context.h"
#include "proto/grpc_status/transport.h"
#include "server/connection_table.h"

namespace cipherd::server {
namespace {

constexpr char kNoCertificate[] = "local";
constexpr char kAuthorization[] = "authorization";
constexpr std::string_view kScheme = "Bearer ";

std::string TenantOfCertificate(const grpc::ServerContextBase& context) {
  const std::shared_ptr<const grpc::AuthContext> auth = context.auth_context();
  if (auth == nullptr || !auth->IsPeerAuthenticated()) return kNoCertificate;
  const std::string property = auth->GetPeerIdentityPropertyName();
  const std::vector<grpc::string_ref> names = auth->GetPeerIdentity();
  if (names.empty()) return kNoCertificate;
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

// Between "[" and "]", which may be escaped; "" where there are none.
std::string InBrackets(const std::string& peer) {
  for (const auto& [open, close] : {std::pair("%5B", "%5D"), std::pair("[", "]")}) {
    const size_t begin = peer.find(open);
    const size_t end = peer.find(close);
    if (begin == std::string::npos || end == std::string::npos) continue;
    const size_t first = begin + std::strlen(open);
    if (first <= end) return peer.substr(first, end - first);
  }
  return "";
}

}  // namespace

std::string PeerHost(const std::string& peer) {
  const std::string v6 = InBrackets(peer);
  if (v6.empty()) return peer.substr(0, std::min(peer.size(), peer.rfind(':')));
  sockaddr_in6 address = {};
  address.sin6_family = AF_INET6;
  if (inet_pton(AF_INET6, v6.c_str(), &address.sin6_addr) != 1) return v6;
  sockaddr_storage storage = {};
  std::memcpy(&storage, &address, sizeof(address));
  return absl::BytesToHexString(PeerKey(storage));
}

std::string CallerKey(const grpc::ServerContextBase& context) {
  std::string tenant = TenantOfCertificate(context);
  return tenant == kNoCertificate ? PeerHost(context.peer()) : tenant;
}

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
