// Payload of an admitted tree, read from a file straight into its tensors.
#pragma once

#include "absl/status/statusor.h"
#include "client/files/file_reader.h"
#include "core/value/value_tree.h"
#include "proto/codec/tree_admission.h"

namespace cipherd::client {

absl::StatusOr<value::ValueTree> ReadPayload(FileReader& file, codec::AdmittedTree admitted);

}  // namespace cipherd::client
