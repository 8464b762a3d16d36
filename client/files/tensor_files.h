// Encrypted values as NumPy arrays, a file a tensor: what clients of the Open Inference Protocol
// send and receive (proto/WIRE_FORMAT.md).
//
//   CIPHERD_RETURN_IF_ERROR(WriteTensorFiles("tensors", {"images"}, inputs));  //
//   tensors/images.npy
//
// uint64 [components, limbs, N], row-major. Arrays say nothing of context, depth and scale: these
// are the program's. Thread-safe.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/execution/value_tree_signature.h"
#include "core/value/value_tree.h"
#include "proto/codec/known_context.h"

namespace cipherd::client {

// Of each of the tuple's values, whose names these are, the tensor in DIRECTORY/NAME.npy. Makes the
// directory; replaces what is there.
absl::Status WriteTensorFiles(const std::string& directory, const std::vector<std::string>& names,
                              const value::ValueTree& values);

// The tuple of `signature` whose tensors are in these files, by name: every name of `names`, no
// other. InvalidArgument where an array does not fit, or a residue is not below its prime.
absl::StatusOr<value::ValueTree> ReadTensorFiles(const std::map<std::string, std::string>& files,
                                                 const std::vector<std::string>& names,
                                                 const execution::ValueTreeSignature& signature,
                                                 const codec::KnownContextPtr& context);

}  // namespace cipherd::client
