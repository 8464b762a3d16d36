// Writes what safetensors.h reads.
//
//   CIPHERD_RETURN_IF_ERROR(WriteSafetensors("constants.safetensors", constants));
#pragma once

#include <string>

#include "absl/status/status.h"
#include "core/programs/constants.h"

namespace cipherd::programs {

// The file appears whole or not at all, in the place of one of that name; equal constants give
// equal bytes. Tensors are contiguous, in host memory, of the dtypes that ReadSafetensors takes,
// else InvalidArgument naming the tensor. Errors of files name the path.
absl::Status WriteSafetensors(const std::string& path, const Constants& constants);

}  // namespace cipherd::programs
