#include "proto/codec/tree_admission.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "proto/codec/mismatch.h"
#include "proto/codec/tensor_admission.h"
#include "proto/codec/tree_structure.h"

namespace cipherd::codec {
namespace {

using internal::Mismatch;
using value::ValueTree;

// The second walk, over a tree whose structure has been checked.
class TreeWalk {
 public:
  TreeWalk(const TreeExpectation& expectation, const WireLimits& limits)
      : expectation_(expectation), limits_(limits) {}

  absl::StatusOr<ValueTree> Admit(const v1::ValueTree& node, const std::string& path) {
    switch (node.node_case()) {
      case v1::ValueTree::kTensor:
        return AdmitTensor(node.tensor(), path);
      case v1::ValueTree::kValue:
        return AdmitLeaf(node.value(), path);
      case v1::ValueTree::kList:
      case v1::ValueTree::kTuple:
        return AdmitSequence(node, path);
      case v1::ValueTree::kDict:
        return AdmitDict(node.dict(), path);
      case v1::ValueTree::NODE_NOT_SET:
        break;
    }
    return absl::InternalError(absl::StrCat(path, ": a node without content passed its check"));
  }

  std::vector<TensorPlan> TakePlans() { return std::move(plans_); }

 private:
  absl::StatusOr<ValueTree> AdmitTensor(const v1::Tensor& message, const std::string& path) {
    CIPHERD_RETURN_IF_ERROR(
        internal::CheckTensorCaps(message, expectation_.max_payload_bytes, limits_, path));
    if (!expectation_.bare_tensors) {
      return Mismatch(path, "", expectation_.types.ToString(), "tensor",
                      v1::ERROR_REASON_SIGNATURE_MISMATCH);
    }
    CIPHERD_ASSIGN_OR_RETURN(TensorPlan plan, internal::ReadTensorSchema(message, path));
    CIPHERD_RETURN_IF_ERROR(internal::CheckByteCount(plan, /*least_dimension=*/0));
    ValueTree leaf = ValueTree::Leaf(internal::AnnouncedTensor(plan));
    plans_.push_back(std::move(plan));
    return leaf;
  }

  absl::StatusOr<ValueTree> AdmitLeaf(const v1::ExactValue& message, const std::string& path) {
    CIPHERD_ASSIGN_OR_RETURN(AdmittedValue admitted,
                             AdmitValue(message, expectation_.contexts, expectation_.types,
                                        expectation_.max_payload_bytes, limits_, path));
    for (TensorPlan& plan : admitted.tensors) plans_.push_back(std::move(plan));
    return ValueTree::Value(std::move(admitted.description));
  }

  absl::StatusOr<ValueTree> AdmitSequence(const v1::ValueTree& node, const std::string& path) {
    const v1::ValueTree::Sequence& sequence = node.has_list() ? node.list() : node.tuple();
    std::vector<ValueTree> children;
    for (int i = 0; i < sequence.children_size(); ++i) {
      CIPHERD_ASSIGN_OR_RETURN(
          ValueTree child,
          Admit(sequence.children(i), value::ChildPath(path, static_cast<size_t>(i))));
      children.push_back(std::move(child));
    }
    return node.has_list() ? ValueTree::List(std::move(children))
                           : ValueTree::Tuple(std::move(children));
  }

  absl::StatusOr<ValueTree> AdmitDict(const v1::ValueTree::Dict& dict, const std::string& path) {
    std::vector<std::pair<std::string, ValueTree>> entries;
    for (const v1::ValueTree::Entry& entry : dict.entries()) {
      CIPHERD_ASSIGN_OR_RETURN(ValueTree child,
                               Admit(entry.child(), value::ChildPath(path, entry.key())));
      entries.emplace_back(entry.key(), std::move(child));
    }
    return ValueTree::Dict(std::move(entries));
  }

  const TreeExpectation& expectation_;
  const WireLimits& limits_;
  std::vector<TensorPlan> plans_;
};

}  // namespace

absl::StatusOr<AdmittedTree> AdmitTree(const v1::ValueTree& message,
                                       const TreeExpectation& expectation, const WireLimits& limits,
                                       std::string_view path) {
  AdmittedTree admitted;
  admitted.path_ = std::string(path);
  CIPHERD_ASSIGN_OR_RETURN(
      admitted.payload_bytes_,
      internal::CheckTreeStructure(message, expectation.max_payload_bytes, limits, path));
  if (expectation.actual_payload_bytes.has_value() &&
      *expectation.actual_payload_bytes != admitted.payload_bytes_) {
    return Mismatch(path, ".payload", absl::StrCat(admitted.payload_bytes_, " bytes, as declared"),
                    absl::StrCat(*expectation.actual_payload_bytes));
  }
  TreeWalk walk(expectation, limits);
  CIPHERD_ASSIGN_OR_RETURN(admitted.skeleton_, walk.Admit(message, admitted.path_));
  admitted.tensors_ = walk.TakePlans();
  if (expectation.signature != nullptr) {
    CIPHERD_RETURN_IF_ERROR(
        internal::WithPathOf(expectation.signature->Validate(admitted.skeleton_, path),
                             v1::ERROR_REASON_SIGNATURE_MISMATCH, path));
  }
  return admitted;
}

AdmittedTree AdmittedTree::FromValue(AdmittedValue value, std::string_view path) {
  AdmittedTree admitted;
  admitted.path_ = std::string(path);
  admitted.skeleton_ = ValueTree::Value(std::move(value.description));
  admitted.tensors_ = std::move(value.tensors);
  admitted.payload_bytes_ = value.payload_bytes;
  return admitted;
}

absl::StatusOr<ValueTree> AdmittedTree::Assemble(std::vector<value::Tensor> tensors) const {
  if (tensors.size() != tensors_.size()) {
    return absl::InternalError(absl::StrCat(path_, ": expected ", tensors_.size(),
                                            " tensors to assemble, got ", tensors.size()));
  }
  size_t next = 0;
  return value::MapTensors(
      skeleton_, path_,
      [&](const std::string&, const value::Tensor&) -> absl::StatusOr<value::Tensor> {
        return std::move(tensors[next++]);
      });
}

}  // namespace cipherd::codec
