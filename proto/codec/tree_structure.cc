#include "proto/codec/tree_structure.h"

#include <optional>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/checked_math.h"
#include "core/base/status_macros.h"
#include "core/value/value_tree.h"
#include "proto/codec/mismatch.h"
#include "proto/codec/value_admission.h"

namespace cipherd::codec::internal {
namespace {

using v1::ValueTree;

// Recursion is as deep as max_tree_nesting allows.
absl::Status CheckNode(const ValueTree& node, int nesting, StructureBudget& budget,
                       const std::string& path) {
  if (node.has_value()) CIPHERD_RETURN_IF_ERROR(RefuseSecretKey(node.value().type(), path));
  CIPHERD_RETURN_IF_ERROR(budget.AddNode(nesting, path));
  switch (node.node_case()) {
    case ValueTree::kTensor:
      return budget.AddBytes(node.tensor().byte_count(), path);
    case ValueTree::kValue:
      for (const v1::NamedTensor& named : node.value().tensors()) {
        CIPHERD_RETURN_IF_ERROR(budget.AddBytes(named.tensor().byte_count(), path));
      }
      return absl::OkStatus();
    case ValueTree::kList:
    case ValueTree::kTuple: {
      const ValueTree::Sequence& sequence = node.has_list() ? node.list() : node.tuple();
      for (int i = 0; i < sequence.children_size(); ++i) {
        CIPHERD_RETURN_IF_ERROR(CheckNode(sequence.children(i), nesting + 1, budget,
                                          value::ChildPath(path, static_cast<size_t>(i))));
      }
      return absl::OkStatus();
    }
    case ValueTree::kDict: {
      std::set<std::string_view> keys;
      for (int i = 0; i < node.dict().entries_size(); ++i) {
        const ValueTree::Entry& entry = node.dict().entries(i);
        CIPHERD_RETURN_IF_ERROR(CheckName(entry.key(), budget.limits().max_name_bytes,
                                          absl::StrCat(path, ".keys[", i, "]")));
        if (!keys.insert(entry.key()).second) {
          return Mismatch(path, absl::StrCat(".keys[", i, "]"), "keys that differ",
                          absl::StrCat("'", entry.key(), "' again"));
        }
        CIPHERD_RETURN_IF_ERROR(
            CheckNode(entry.child(), nesting + 1, budget, value::ChildPath(path, entry.key())));
      }
      return absl::OkStatus();
    }
    case ValueTree::NODE_NOT_SET:
      break;
  }
  return Mismatch(path, "", "a tensor, a value, or a list, tuple or dict of them", "none");
}

}  // namespace

absl::Status StructureBudget::AddNode(int nesting, std::string_view path) {
  if (nesting > limits_.max_tree_nesting) {
    return AboveLimit(path, ".nesting", static_cast<uint64_t>(limits_.max_tree_nesting),
                      static_cast<uint64_t>(nesting));
  }
  if (++node_count_ <= limits_.max_tree_nodes) return absl::OkStatus();
  return AboveLimit(path, ".node_count", static_cast<uint64_t>(limits_.max_tree_nodes),
                    static_cast<uint64_t>(node_count_));
}

absl::Status StructureBudget::AddBytes(uint64_t bytes, std::string_view path) {
  const std::optional<uint64_t> sum = base::CheckedAdd(bytes_, bytes);
  if (!sum.has_value() || *sum > max_bytes_) {
    return Mismatch(path, ".byte_count", absl::StrCat("at most ", max_bytes_, " in sum"),
                    absl::StrCat(bytes, " after ", bytes_), v1::ERROR_REASON_LIMIT_EXCEEDED);
  }
  bytes_ = *sum;
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> CheckTreeStructure(const ValueTree& message, uint64_t max_bytes,
                                            const WireLimits& limits, std::string_view path) {
  StructureBudget budget(limits, max_bytes);
  CIPHERD_RETURN_IF_ERROR(CheckNode(message, 0, budget, std::string(path)));
  return budget.bytes();
}

}  // namespace cipherd::codec::internal
