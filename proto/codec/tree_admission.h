// Admission of a tree that a peer announced: every check that needs no payload.
//
//   CIPHERD_ASSIGN_OR_RETURN(
//       AdmittedTree admitted,
//       AdmitTree(header.inputs(),
//                 {.contexts = program_contexts, .signature = &program.input_signature,
//                  .max_payload_bytes = limits.max_request_bytes},
//                 limits, "inputs"));
//   // Reserve admitted.payload_bytes() against the budget, lease memory, then
//   // PayloadReader::Allocate or ::Into (payload_reader.h).
//
// Order: secret keys, counts, nesting, names and byte caps of the whole tree; then, depth first,
// each value (value_admission.h); then the signature. Nothing is allocated but the description.
// Thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "cipherd/v1/value.pb.h"
#include "core/execution/value_tree_signature.h"
#include "core/value/value_tree.h"
#include "proto/codec/known_context.h"
#include "proto/codec/tensor_plan.h"
#include "proto/codec/value_admission.h"
#include "proto/codec/wire_limits.h"

namespace cipherd::codec {

struct TreeExpectation {
  // Contexts that values may belong to.
  std::span<const KnownContextPtr> contexts;
  ValueTypeSet types = kOperandTypes;
  // Whether tensors may stand in the tree by themselves.
  bool bare_tensors = false;
  // Where given, the tree must match it exactly; reason SIGNATURE_MISMATCH. Borrowed for the call.
  const execution::ValueTreeSignature* signature = nullptr;
  // Cap on the payload of the whole tree.
  uint64_t max_payload_bytes = 0;
  // Where the payload is there already (unary calls): its length, which the tree must declare.
  std::optional<uint64_t> actual_payload_bytes;
};

class AdmittedTree {
 public:
  uint64_t payload_bytes() const { return payload_bytes_; }
  // Depth first: the order of the payload.
  const std::vector<TensorPlan>& tensors() const { return tensors_; }
  // The tree with tensors that have dtype, shape and strides, but no memory: data() is null.
  const value::ValueTree& skeleton() const { return skeleton_; }
  // Root of the paths in `tensors`.
  const std::string& path() const { return path_; }

  // The announced tree over `tensors`, one for each plan and in that order.
  absl::StatusOr<value::ValueTree> Assemble(std::vector<value::Tensor> tensors) const;

  // A tree that is one admitted value.
  static AdmittedTree FromValue(AdmittedValue value, std::string_view path);

 private:
  friend absl::StatusOr<AdmittedTree> AdmitTree(const v1::ValueTree& message,
                                                const TreeExpectation& expectation,
                                                const WireLimits& limits, std::string_view path);
  AdmittedTree() = default;

  std::string path_;
  value::ValueTree skeleton_;
  std::vector<TensorPlan> tensors_;
  uint64_t payload_bytes_ = 0;
};

absl::StatusOr<AdmittedTree> AdmitTree(const v1::ValueTree& message,
                                       const TreeExpectation& expectation, const WireLimits& limits,
                                       std::string_view path);

}  // namespace cipherd::codec
