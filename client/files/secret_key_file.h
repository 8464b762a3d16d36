// Secret keys on disk: mode 0600, never overwritten, refused when others may read them.
//
// No function of the client library sends what these read: secret keys have no encoding on the
// wire.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/ckks/context_parameters.h"
#include "core/secret/secret_key.h"

namespace cipherd::client {

// AlreadyExists where there is a file of that name: a lost secret key makes every result
// unreadable.
absl::Status WriteSecretKeyFile(const std::string& path, const secret::SecretKey& secret_key);

// FailedPrecondition where group or others have any right to the file, or it is another user's.
// InvalidArgument where it is no whole secret key, or its context is not admitted by `policy`.
absl::StatusOr<secret::SecretKey> ReadSecretKeyFile(const std::string& path,
                                                    ckks::SecurityPolicy policy);

}  // namespace cipherd::client
