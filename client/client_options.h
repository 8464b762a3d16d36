// How a client reaches the daemon.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/ckks/context_parameters.h"
#include "proto/codec/wire_limits.h"

namespace cipherd::client {

// PEM files.
struct TlsOptions {
  // Who signs the daemon's certificate. Empty: the system's authorities.
  std::string ca_file;
  // For mutual TLS; both or none.
  std::string certificate_file;
  std::string private_key_file;
  // Name that the daemon's certificate must bear, where it is not the target's.
  std::string server_name;
};

struct ClientOptions {
  // "host:port", "127.0.0.1:7480", "unix:/run/cipherd.sock"
  std::string target;
  // Absent: plain text. Ciphertexts need no secrecy, but without TLS anyone on the way can exchange
  // them, and the token below is readable; so plain text is refused unless the target is this
  // machine or the flag is set.
  std::optional<TlsOptions> tls;
  bool allow_plain_text_to_remote = false;
  // Sent as "authorization: Bearer …" with every call, where not empty: for a daemon that knows its
  // tenants by tokens, or a proxy that asks for one.
  std::string bearer_token;
  // Has the token in its first line, in the place of the above. Read again whenever it has changed,
  // so that a token that ends is renewed by whoever writes the file.
  std::string bearer_token_file;

  // Until the first answer of the daemon.
  absl::Duration connect_timeout = absl::Seconds(10);
  // Programs over contexts below 128-bit security are refused: a daemon must not talk a client into
  // a weak key.
  ckks::SecurityPolicy security_policy = ckks::SecurityPolicy::k128BitClassical;
  // Bounds on what is accepted from the daemon. What is sent keeps the daemon's limits too.
  codec::WireLimits limits;

  // InvalidArgument naming the field.
  absl::Status Validate() const;
};

// Whether `target` is a Unix socket or a loopback address.
bool IsLocalTarget(const std::string& target);

}  // namespace cipherd::client
