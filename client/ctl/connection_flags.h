// The flags of every tool that talks to a daemon.
#pragma once

#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "client/client_options.h"

namespace cipherd::client {

struct ConnectionFlags {
  std::string server = "127.0.0.1:7480";
  bool use_tls = false;
  TlsOptions tls;
  bool allow_plain_text_to_remote = false;
  std::string token_file;
  bool allow_insecure_contexts = false;
  double connect_timeout_seconds = 10;

  // `this` must outlive the parsing.
  void AddTo(CLI::App& app);
  ClientOptions ToOptions() const;
  ckks::SecurityPolicy security_policy() const;
};

// "NOT_FOUND: no program 'x' [UNKNOWN_PROGRAM]", and what to do where the reason says it.
std::string DescribeError(const absl::Status& status);

}  // namespace cipherd::client
