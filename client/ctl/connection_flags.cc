#include "client/ctl/connection_flags.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/client.h"

namespace cipherd::client {
namespace {

// What helps, beside what the message says.
std::string AdviceFor(v1::ErrorReason reason) {
  switch (reason) {
    case v1::ERROR_REASON_UNKNOWN_KEY_SET:
      return "upload the keys: cipherctl put-keys";
    case v1::ERROR_REASON_MISSING_KEY:
      return "make the keys for this program: cipherctl keygen";
    case v1::ERROR_REASON_WRONG_CONTEXT:
      return "make keys for this program: cipherctl keygen";
    case v1::ERROR_REASON_UNKNOWN_PROGRAM:
      return "see what there is: cipherctl programs";
    case v1::ERROR_REASON_OVERLOADED:
      return "try again after a while";
    default:
      return "";
  }
}

}  // namespace

void ConnectionFlags::AddTo(CLI::App& app) {
  app.add_option("--server", server, "Address of the daemon: host:port or unix:path")
      ->envname("CIPHERD_SERVER")
      ->capture_default_str();
  CLI::Option* tls_flag = app.add_flag("--tls", use_tls, "Connect with TLS");
  app.add_option("--ca", tls.ca_file,
                 "PEM file of who signs the daemon's certificate (default: the system's)")
      ->needs(tls_flag);
  app.add_option("--cert", tls.certificate_file, "PEM file of this client's certificate")
      ->needs(tls_flag);
  app.add_option("--cert-key", tls.private_key_file, "PEM file of its private key")
      ->needs(tls_flag);
  app.add_option("--server-name", tls.server_name,
                 "Name in the daemon's certificate, where not the address's")
      ->needs(tls_flag);
  app.add_flag("--allow-plain-text", allow_plain_text_to_remote,
               "Connect to another machine without TLS");
  app.add_option("--token-file", token_file,
                 "File with a bearer token, for a daemon or a proxy that asks for one; read again "
                 "when it has changed");
  app.add_flag("--allow-insecure-contexts", allow_insecure_contexts,
               "Take programs below 128-bit security: for tests");
  app.add_option("--connect-timeout", connect_timeout_seconds,
                 "Seconds until the daemon must answer")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

ckks::SecurityPolicy ConnectionFlags::security_policy() const {
  return allow_insecure_contexts ? ckks::SecurityPolicy::kAllowInsecure
                                 : ckks::SecurityPolicy::k128BitClassical;
}

ClientOptions ConnectionFlags::ToOptions() const {
  ClientOptions options;
  options.target = server;
  if (use_tls) options.tls = tls;
  options.allow_plain_text_to_remote = allow_plain_text_to_remote;
  options.connect_timeout = absl::Seconds(connect_timeout_seconds);
  options.security_policy = security_policy();
  options.bearer_token_file = token_file;
  return options;
}

std::string DescribeError(const absl::Status& status) {
  std::string text = absl::StrCat(absl::StatusCodeToString(status.code()), ": ", status.message());
  if (absl::IsUnauthenticated(status)) {
    return absl::StrCat(text, "\ngive a token that is good: --token-file");
  }
  const v1::ErrorReason reason = ReasonOf(status);
  if (reason == v1::ERROR_REASON_UNSPECIFIED) return text;
  const std::string name = v1::ErrorReason_Name(reason);
  absl::StrAppend(&text, " [", absl::StripPrefix(name, "ERROR_REASON_"), "]");
  const std::string advice = AdviceFor(reason);
  if (!advice.empty()) absl::StrAppend(&text, "\n", advice);
  return text;
}

}  // namespace cipherd::client
