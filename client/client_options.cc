#include "client/client_options.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/status_macros.h"

namespace cipherd::client {

bool IsLocalTarget(const std::string& target) {
  absl::string_view address = target;
  if (absl::StartsWith(address, "unix:") || absl::StartsWith(address, "unix-abstract:"))
    return true;
  absl::ConsumePrefix(&address, "dns:");
  absl::ConsumePrefix(&address, "ipv4:");
  absl::ConsumePrefix(&address, "ipv6:");
  absl::ConsumePrefix(&address, "///");
  // One address only: a list could name others.
  if (absl::StrContains(address, ",")) return false;
  if (absl::StartsWith(address, "[::1]:")) return true;
  const size_t colon = address.rfind(':');
  if (colon == absl::string_view::npos) return false;
  const absl::string_view host = address.substr(0, colon);
  if (host == "localhost") return true;
  // Digits and dots only: "127.evil.example" is a name.
  return absl::StartsWith(host, "127.") &&
         host.find_first_not_of("0123456789.") == absl::string_view::npos;
}

absl::Status ClientOptions::Validate() const {
  if (target.empty()) return absl::InvalidArgumentError("target: expected an address, got none");
  if (tls.has_value()) {
    if (tls->certificate_file.empty() != tls->private_key_file.empty()) {
      return absl::InvalidArgumentError(
          "tls: expected both certificate_file and private_key_file, or neither");
    }
  } else if (target.find(':') == std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("target: expected host:port or unix:path, got '", target, "'"));
  } else if (!IsLocalTarget(target) && !allow_plain_text_to_remote) {
    return absl::InvalidArgumentError(
        absl::StrCat("target: '", target,
                     "' is not on this machine: use TLS, or set allow_plain_text_to_remote where "
                     "the network is trusted"));
  }
  if (connect_timeout <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError("connect_timeout: expected a positive duration");
  }
  return limits.Validate();
}

}  // namespace cipherd::client
