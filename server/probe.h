// Asks a daemon's health, as container health checks do.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace cipherd::server {

struct ProbeOptions {
  std::string address;
  // A program's name, or empty for the daemon.
  std::string service;
  // PEM file of the CA that signed the daemon's certificate; empty: plaintext.
  std::string ca_file;
  // What the certificate must say, where that is not the address.
  std::string server_name;
  // PEM files of an own certificate. Both, or none.
  std::string certificate_file;
  std::string key_file;
  absl::Duration timeout = absl::Seconds(5);
};

// OK where SERVING; FailedPrecondition where not; NotFound for an unknown program or a file that
// cannot be read; else why nobody answered. Messages begin with the address. Blocks up to
// `timeout`.
absl::Status Probe(const ProbeOptions& options);

}  // namespace cipherd::server
