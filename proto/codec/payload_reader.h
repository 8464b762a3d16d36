// Reads the payload of an admitted tree, in pieces of any size, straight into its tensors.
//
//   CIPHERD_ASSIGN_OR_RETURN(PayloadReader reader,
//                            PayloadReader::Allocate(std::move(admitted), PinnedTensors(device)));
//   while (stream.Read(&message)) CIPHERD_RETURN_IF_ERROR(reader.Write(message.chunk()));
//   CIPHERD_ASSIGN_OR_RETURN(value::ValueTree inputs, std::move(reader).Finish());
//
// Each residue is compared with its prime while it is still in cache. The verdict is given by
// Finish, after that on the length, so that the order of checks does not depend on the split.
//
// Ownership: shares the tensors. A reader that is dropped half way leaves undefined bytes in them
// and nothing else. Threading: one thread at a time. Errors: InvalidArgument with reason
// MALFORMED_VALUE for what a peer sent, Internal for memory that does not fit the plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/value/value_tree.h"
#include "proto/codec/tensor_plan.h"
#include "proto/codec/tree_admission.h"

namespace cipherd::codec {

class PayloadReader {
 public:
  // Into tensors of its own. Errors of `allocate`; Internal where it gives tensors of another
  // dtype, shape or memory than asked for.
  static absl::StatusOr<PayloadReader> Allocate(AdmittedTree admitted,
                                                const TensorAllocator& allocate);
  // Into the tensors of `storage`, a lease for instance: contiguous, on the host, of the admitted
  // dtypes and shapes in payload order (else Internal). The result has the admitted state over
  // these tensors; the state and structure of `storage` do not matter.
  static absl::StatusOr<PayloadReader> Into(AdmittedTree admitted, const value::ValueTree& storage);

  PayloadReader(PayloadReader&&) = default;
  PayloadReader& operator=(PayloadReader&&) = default;

  uint64_t total_bytes() const { return admitted_.payload_bytes(); }
  uint64_t remaining_bytes() const { return remaining_bytes_; }

  // The next bytes of the payload. Bytes beyond its end are refused, and none of `bytes` is taken.
  absl::Status Write(std::span<const uint8_t> bytes);
  absl::Status Write(std::string_view bytes) {
    return Write(std::span(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()));
  }

  // The same without a copy: the place of the next bytes, up to the end of their tensor (empty at
  // the end of the payload), and word that the first `count` of them have been written.
  std::span<uint8_t> NextRegion();
  absl::Status Advance(size_t count);

  // Child `index` of a list or tuple, where every byte up to its end has come; nothing where some
  // have not. For who uses a payload before it is complete. Errors as Finish's for residues.
  // Beyond the last child: nothing.
  absl::StatusOr<std::optional<value::ValueTree>> CompletedChild(size_t index);

  // The tree, once every byte has come and every residue was below its prime.
  absl::StatusOr<value::ValueTree> Finish() &&;

 private:
  PayloadReader(AdmittedTree admitted, std::vector<value::Tensor> tensors);
  void CheckWrittenResidues();
  void SkipFullTensors();

  AdmittedTree admitted_;
  std::vector<value::Tensor> tensors_;
  // Where the next byte goes.
  size_t tensor_index_ = 0;
  uint64_t offset_in_tensor_ = 0;
  // Residues of the current tensor that have been checked.
  uint64_t checked_residues_ = 0;
  uint64_t remaining_bytes_ = 0;
  // The tree over the tensors, and the number of tensors up to the end of each child: from the
  // first CompletedChild on.
  std::optional<value::ValueTree> tree_;
  std::vector<size_t> child_ends_;
  // OK until a residue was not below its prime: the first one that was not.
  absl::Status residue_status_;
};

}  // namespace cipherd::codec
