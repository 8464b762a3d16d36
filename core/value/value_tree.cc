#include "core/value/value_tree.h"

#include <algorithm>
#include <cstdlib>
#include <set>
#include <unordered_map>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/value/tensor_copy.h"
#include "spdlog/spdlog.h"

namespace cipherd::value {
namespace {

// absl::StrCat takes no std::string_view here.
std::string Text(std::string_view text) { return std::string(text); }

template <typename... Reason>
absl::Status Refusal(std::string_view path, const Reason&... reason) {
  return absl::InvalidArgumentError(absl::StrCat(Text(path), ": ", reason...));
}

std::string TensorPath(std::string_view path, std::string_view name) {
  return absl::StrCat(Text(path), ".", Text(name));
}

std::string PathOfChild(const ValueTree& tree, std::string_view path, size_t index) {
  return tree.kind() == TreeKind::kDict ? ChildPath(path, tree.keys()[index])
                                        : ChildPath(path, index);
}

// The same container over other children.
ValueTree Rebuild(const ValueTree& tree, std::vector<ValueTree> children) {
  if (tree.kind() == TreeKind::kList) return ValueTree::List(std::move(children));
  if (tree.kind() == TreeKind::kTuple) return ValueTree::Tuple(std::move(children));
  std::vector<std::pair<std::string, ValueTree>> entries;
  entries.reserve(children.size());
  for (size_t i = 0; i < children.size(); ++i) {
    entries.emplace_back(tree.keys()[i], std::move(children[i]));
  }
  return ValueTree::Dict(std::move(entries));
}

void AppendTensors(const ValueTree& tree, std::vector<const Tensor*>& tensors) {
  if (tree.kind() == TreeKind::kTensor) tensors.push_back(&tree.tensor());
  if (tree.kind() == TreeKind::kValue) {
    for (const auto& [name, tensor] : tree.exact_value().tensors) tensors.push_back(&tensor);
  }
  for (const ValueTree& child : tree.children()) AppendTensors(child, tensors);
}

}  // namespace

std::string_view ToString(TreeKind kind) {
  switch (kind) {
    case TreeKind::kTensor:
      return "tensor";
    case TreeKind::kValue:
      return "value";
    case TreeKind::kList:
      return "list";
    case TreeKind::kTuple:
      return "tuple";
    case TreeKind::kDict:
      return "dict";
    case TreeKind::kNone:
      return "none";
    case TreeKind::kOpaque:
      return "opaque";
  }
  return "unknown kind";
}

ValueTree ValueTree::Leaf(Tensor tensor) {
  ValueTree tree;
  tree.kind_ = TreeKind::kTensor;
  tree.leaf_ = std::move(tensor);
  return tree;
}

ValueTree ValueTree::Value(ExactValue value) {
  ValueTree tree;
  tree.kind_ = TreeKind::kValue;
  std::stable_sort(value.tensors.begin(), value.tensors.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  tree.leaf_ = std::move(value);
  return tree;
}

ValueTree ValueTree::List(std::vector<ValueTree> children) {
  ValueTree tree;
  tree.kind_ = TreeKind::kList;
  tree.children_ = std::move(children);
  return tree;
}

ValueTree ValueTree::Tuple(std::vector<ValueTree> children) {
  ValueTree tree;
  tree.kind_ = TreeKind::kTuple;
  tree.children_ = std::move(children);
  return tree;
}

ValueTree ValueTree::Dict(std::vector<std::pair<std::string, ValueTree>> entries) {
  ValueTree tree;
  tree.kind_ = TreeKind::kDict;
  tree.children_.reserve(entries.size());
  tree.keys_.reserve(entries.size());
  for (auto& [key, child] : entries) {
    tree.keys_.push_back(std::move(key));
    tree.children_.push_back(std::move(child));
  }
  return tree;
}

ValueTree ValueTree::Opaque(std::string description) {
  ValueTree tree;
  tree.kind_ = TreeKind::kOpaque;
  tree.description_ = std::move(description);
  return tree;
}

// std::get throws for the wrong kind, and noexcept makes that fatal.
const Tensor& ValueTree::tensor() const noexcept { return std::get<Tensor>(leaf_); }
const ExactValue& ValueTree::exact_value() const noexcept { return std::get<ExactValue>(leaf_); }

const ValueTree& ValueTree::operator[](std::string_view key) const noexcept {
  for (size_t i = 0; i < keys_.size(); ++i) {
    if (keys_[i] == key) return children_[i];
  }
  spdlog::critical("value tree: no entry under key '{}' of a {}", key, ToString(kind_));
  std::abort();
}

std::string ChildPath(std::string_view path, size_t index) {
  return absl::StrCat(Text(path), "[", index, "]");
}

std::string ChildPath(std::string_view path, std::string_view key) {
  return absl::StrCat(Text(path), "['", absl::Utf8SafeCEscape(Text(key)), "']");
}

absl::Status CheckSupported(const ExactValue& value, std::string_view path) {
  if (value.tensors.empty()) {
    return Refusal(path, "expected a value with tensors, got a ", Text(ToString(value.type)),
                   " without");
  }
  std::set<std::string_view> names;
  for (const auto& [name, tensor] : value.tensors) {
    if (!names.insert(name).second) return Refusal(path, "two tensors are called '", name, "'");
  }
  return absl::OkStatus();
}

absl::Status CheckSupported(const ValueTree& tree, std::string_view path) {
  switch (tree.kind()) {
    case TreeKind::kTensor:
      return absl::OkStatus();
    case TreeKind::kNone:
      return Refusal(path, "expected a tensor, an exact value or a container of them, got none");
    case TreeKind::kOpaque:
      return Refusal(path,
                     "expected a tensor, an exact value or a list, tuple or dict of them, got ",
                     tree.opaque_description());
    case TreeKind::kValue:
      return CheckSupported(tree.exact_value(), path);
    case TreeKind::kDict: {
      std::set<std::string_view> keys;
      for (const std::string& key : tree.keys()) {
        if (!keys.insert(key).second) return Refusal(path, "two entries have the key '", key, "'");
      }
      break;
    }
    case TreeKind::kList:
    case TreeKind::kTuple:
      break;
  }
  for (size_t i = 0; i < tree.children().size(); ++i) {
    CIPHERD_RETURN_IF_ERROR(CheckSupported(tree[i], PathOfChild(tree, path, i)));
  }
  return absl::OkStatus();
}

std::vector<const Tensor*> TensorsOf(const ValueTree& tree) {
  std::vector<const Tensor*> tensors;
  AppendTensors(tree, tensors);
  return tensors;
}

absl::Status ForEachTensor(
    const ValueTree& tree, std::string_view path,
    const std::function<absl::Status(const std::string& path, const Tensor& tensor)>& visit) {
  if (tree.kind() == TreeKind::kTensor) return visit(Text(path), tree.tensor());
  if (tree.kind() == TreeKind::kValue) {
    for (const auto& [name, tensor] : tree.exact_value().tensors) {
      CIPHERD_RETURN_IF_ERROR(visit(TensorPath(path, name), tensor));
    }
  }
  for (size_t i = 0; i < tree.children().size(); ++i) {
    CIPHERD_RETURN_IF_ERROR(ForEachTensor(tree[i], PathOfChild(tree, path, i), visit));
  }
  return absl::OkStatus();
}

absl::StatusOr<ValueTree> MapTensors(
    const ValueTree& tree, std::string_view path,
    const std::function<absl::StatusOr<Tensor>(const std::string& path, const Tensor& tensor)>&
        map) {
  if (tree.kind() == TreeKind::kTensor) {
    CIPHERD_ASSIGN_OR_RETURN(Tensor tensor, map(Text(path), tree.tensor()));
    return ValueTree::Leaf(std::move(tensor));
  }
  if (tree.kind() == TreeKind::kValue) {
    ExactValue value = tree.exact_value();
    for (auto& [name, tensor] : value.tensors) {
      CIPHERD_ASSIGN_OR_RETURN(tensor, map(TensorPath(path, name), tensor));
    }
    return ValueTree::Value(std::move(value));
  }
  if (!tree.is_container()) return tree;
  std::vector<ValueTree> children;
  children.reserve(tree.children().size());
  for (size_t i = 0; i < tree.children().size(); ++i) {
    CIPHERD_ASSIGN_OR_RETURN(ValueTree child, MapTensors(tree[i], PathOfChild(tree, path, i), map));
    children.push_back(std::move(child));
  }
  return Rebuild(tree, std::move(children));
}

int64_t ValueTreeNbytes(const ValueTree& tree) {
  int64_t bytes = 0;
  for (const Tensor* tensor : TensorsOf(tree)) bytes += tensor->bytes();
  return bytes;
}

absl::Status RefuseAliases(const ValueTree& tree, std::string_view path) {
  std::unordered_map<const runtime::Storage*, std::string> owners;
  return ForEachTensor(tree, path, [&](const std::string& tensor_path, const Tensor& tensor) {
    if (tensor.bytes() == 0) return absl::OkStatus();
    auto [owner, inserted] = owners.emplace(tensor.storage().get(), tensor_path);
    if (inserted) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        tensor_path, ": expected storage of its own, got the storage of ", owner->second));
  });
}

absl::StatusOr<ValueTree> PinValueTree(const ValueTree& tree, runtime::Device& device,
                                       runtime::Stream& stream) {
  CIPHERD_RETURN_IF_ERROR(CheckSupported(tree, "value"));
  CIPHERD_RETURN_IF_ERROR(RefuseAliases(tree, "value"));
  bool enqueued = false;
  absl::StatusOr<ValueTree> pinned = MapTensors(
      tree, "value", [&](const std::string&, const Tensor& source) -> absl::StatusOr<Tensor> {
        CIPHERD_ASSIGN_OR_RETURN(Tensor target, PinnedTensorLike(source, device));
        if (source.bytes() == 0) return target;
        if (source.placement().is_host()) {
          CIPHERD_RETURN_IF_ERROR(CopyTensorOnHost(source, target));
          return target;
        }
        source.storage()->RecordUse(stream);
        target.storage()->RecordUse(stream);
        CIPHERD_RETURN_IF_ERROR(CopyTensorAsync(source, target, stream));
        enqueued = true;
        return target;
      });
  CIPHERD_RETURN_IF_ERROR(pinned.status());
  if (enqueued) CIPHERD_RETURN_IF_ERROR(stream.Synchronize());
  return pinned;
}

}  // namespace cipherd::value
