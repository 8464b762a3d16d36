// What the daemon wants to know of certificates before it uses them. `pem` are the bytes of `file`,
// which messages name.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace cipherd::server {

// When the first of the certificates ends: from then on the chain, or whom only that authority
// vouches for, is not trusted. InvalidArgument where there is no certificate, or one that cannot be
// read.
absl::StatusOr<absl::Time> EarliestExpiry(const std::string& pem, std::string_view file);

// OK where the key is that of the first certificate. InvalidArgument where it is another's, cannot
// be read or needs a passphrase.
absl::Status CheckKeyOfCertificate(const std::string& certificate_pem,
                                   std::string_view certificate_file, const std::string& key_pem,
                                   std::string_view key_file);

}  // namespace cipherd::server
