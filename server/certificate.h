// What the daemon wants to know of certificates beside using them: when they end.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace cipherd::server {

// When the first of the certificates in a PEM file ends: from then on the chain, or whom only that
// authority vouches for, is not trusted. NotFound where the file cannot be read; InvalidArgument,
// naming it, where it holds no certificate or one that cannot be read.
absl::StatusOr<absl::Time> EarliestExpiry(const std::string& pem_file);

}  // namespace cipherd::server
