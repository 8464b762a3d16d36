#include "core/execution/value_tree_signature.h"

#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status_macros.h"
#include "core/execution/mismatch.h"

namespace cipherd::execution {
namespace {

using value::TreeKind;
using value::ValueTree;

std::string Quoted(const std::string& key) {
  return absl::StrCat("'", absl::Utf8SafeCEscape(key), "'");
}

std::string ListOf(const std::vector<std::string>& keys) {
  auto quote = [](std::string* out, const std::string& key) { absl::StrAppend(out, Quoted(key)); };
  return absl::StrCat("[", absl::StrJoin(keys, ", ", quote), "]");
}

std::string Describe(const ValueTree& tree) {
  if (tree.kind() == TreeKind::kOpaque) return tree.opaque_description();
  return std::string(value::ToString(tree.kind()));
}

// Requires a tree that value::CheckSupported accepts.
absl::StatusOr<ValueTreeSignature> SignatureOf(const ValueTree& tree) {
  if (tree.kind() == TreeKind::kTensor) {
    return ValueTreeSignature::Leaf(TensorSignature::FromTensor(tree.tensor()));
  }
  if (tree.kind() == TreeKind::kValue) {
    CIPHERD_ASSIGN_OR_RETURN(ValueSignature leaf, ValueSignature::FromValue(tree.exact_value()));
    return ValueTreeSignature::Leaf(std::move(leaf));
  }
  std::vector<ValueTreeSignature> children;
  children.reserve(tree.children().size());
  for (const ValueTree& child : tree.children()) {
    CIPHERD_ASSIGN_OR_RETURN(ValueTreeSignature signature, SignatureOf(child));
    children.push_back(std::move(signature));
  }
  if (tree.kind() == TreeKind::kList) return ValueTreeSignature::List(std::move(children));
  if (tree.kind() == TreeKind::kTuple) return ValueTreeSignature::Tuple(std::move(children));
  std::vector<std::pair<std::string, ValueTreeSignature>> entries;
  for (size_t i = 0; i < children.size(); ++i) {
    entries.emplace_back(tree.keys()[i], std::move(children[i]));
  }
  return ValueTreeSignature::Dict(std::move(entries));
}

std::string Print(const ValueTreeSignature& signature, bool multi_line, int indent) {
  if (signature.kind() == TreeKind::kTensor) return signature.tensor().ToString();
  if (signature.kind() == TreeKind::kValue) return signature.value().ToString(multi_line, indent);
  std::vector<std::string> items;
  for (size_t i = 0; i < signature.children().size(); ++i) {
    std::string child = Print(signature.children()[i], multi_line, indent + 2);
    if (signature.kind() == TreeKind::kDict) {
      child = absl::StrCat(Quoted(signature.keys()[i]), ": ", child);
    }
    items.push_back(std::move(child));
  }
  const char* brackets = signature.kind() == TreeKind::kList    ? "[]"
                         : signature.kind() == TreeKind::kTuple ? "()"
                                                                : "{}";
  const std::string name(value::ToString(signature.kind()));
  const std::string open(1, brackets[0]);
  const std::string close(1, brackets[1]);
  if (!multi_line || items.empty()) {
    return absl::StrCat(name, open, absl::StrJoin(items, ", "), close);
  }
  const std::string margin(static_cast<size_t>(indent), ' ');
  return absl::StrCat(name, open, "\n", margin, "  ",
                      absl::StrJoin(items, absl::StrCat(",\n", margin, "  ")), "\n", margin, close);
}

}  // namespace

ValueTreeSignature ValueTreeSignature::Leaf(TensorSignature tensor) {
  ValueTreeSignature signature;
  signature.kind_ = TreeKind::kTensor;
  signature.leaf_ = std::move(tensor);
  return signature;
}

ValueTreeSignature ValueTreeSignature::Leaf(ValueSignature value) {
  ValueTreeSignature signature;
  signature.kind_ = TreeKind::kValue;
  signature.leaf_ = std::move(value);
  return signature;
}

ValueTreeSignature ValueTreeSignature::List(std::vector<ValueTreeSignature> children) {
  ValueTreeSignature signature;
  signature.kind_ = TreeKind::kList;
  signature.children_ = std::move(children);
  return signature;
}

ValueTreeSignature ValueTreeSignature::Tuple(std::vector<ValueTreeSignature> children) {
  ValueTreeSignature signature;
  signature.children_ = std::move(children);
  return signature;
}

absl::StatusOr<ValueTreeSignature> ValueTreeSignature::Dict(
    std::vector<std::pair<std::string, ValueTreeSignature>> entries) {
  ValueTreeSignature signature;
  signature.kind_ = TreeKind::kDict;
  std::set<std::string> seen;
  for (auto& [key, child] : entries) {
    if (!seen.insert(key).second) {
      return absl::InvalidArgumentError(absl::StrCat("two entries have the key ", Quoted(key)));
    }
    signature.keys_.push_back(std::move(key));
    signature.children_.push_back(std::move(child));
  }
  return signature;
}

absl::StatusOr<ValueTreeSignature> ValueTreeSignature::FromTree(const ValueTree& tree,
                                                                std::string_view path) {
  CIPHERD_RETURN_IF_ERROR(value::CheckSupported(tree, path));
  return SignatureOf(tree);
}

absl::Status ValueTreeSignature::Validate(const ValueTree& tree, std::string_view path) const {
  if (tree.kind() != kind_) return Mismatch(path, "", value::ToString(kind_), Describe(tree));
  if (kind_ == TreeKind::kTensor) {
    return tensor().CheckSame(TensorSignature::FromTensor(tree.tensor()), path);
  }
  if (kind_ == TreeKind::kValue) {
    CIPHERD_ASSIGN_OR_RETURN(ValueSignature actual,
                             ValueSignature::FromValue(tree.exact_value(), path));
    return value().CheckSame(actual, path);
  }
  if (tree.keys() != keys_) return Mismatch(path, ".keys", ListOf(keys_), ListOf(tree.keys()));
  if (tree.children().size() != children_.size()) {
    return Mismatch(path, ".length", std::to_string(children_.size()),
                    std::to_string(tree.children().size()));
  }
  for (size_t i = 0; i < children_.size(); ++i) {
    const std::string child_path =
        kind_ == TreeKind::kDict ? value::ChildPath(path, keys_[i]) : value::ChildPath(path, i);
    CIPHERD_RETURN_IF_ERROR(children_[i].Validate(tree[i], child_path));
  }
  return absl::OkStatus();
}

// std::get throws for the wrong kind, and noexcept makes that fatal.
const TensorSignature& ValueTreeSignature::tensor() const noexcept {
  return std::get<TensorSignature>(leaf_);
}
const ValueSignature& ValueTreeSignature::value() const noexcept {
  return std::get<ValueSignature>(leaf_);
}

std::string ValueTreeSignature::ToString(bool multi_line) const {
  return Print(*this, multi_line, 0);
}

}  // namespace cipherd::execution
