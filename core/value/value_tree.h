// Tensors and exact values nested in lists, tuples and dicts: what callables take and return, what
// buffers hold, what requests carry.
//
//   ValueTree tree = ValueTree::Dict(
//       {{"x", ValueTree::Value(ciphertext)},
//        {"rows", ValueTree::List({ValueTree::Leaf(t0), ValueTree::Leaf(t1)})}});
//   tree["rows"][1]
//
// A tree can also hold what no signature admits (None, an opaque host object such as a scalar), so
// that the refusal names it. Copying a tree copies no payload. Immutable but for assignment.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/value/exact_value.h"
#include "core/value/tensor.h"

namespace cipherd::value {

enum class TreeKind : uint8_t {
  kTensor,
  kValue,
  kList,
  kTuple,
  kDict,
  kNone,    // nothing: a callable without output
  kOpaque,  // anything else: scalars, strings, control objects, other containers
};
std::string_view ToString(TreeKind kind);
inline std::ostream& operator<<(std::ostream& out, TreeKind kind) { return out << ToString(kind); }

class ValueTree {
 public:
  // None.
  ValueTree() = default;

  static ValueTree None() { return {}; }
  static ValueTree Leaf(Tensor tensor);
  // Orders the value's tensors by name.
  static ValueTree Value(ExactValue value);
  static ValueTree List(std::vector<ValueTree> children);
  static ValueTree Tuple(std::vector<ValueTree> children);
  // Keys keep their order and must be unique (checked by signatures).
  static ValueTree Dict(std::vector<std::pair<std::string, ValueTree>> entries);
  // `description` names the thing in messages: "int", "set".
  static ValueTree Opaque(std::string description);

  TreeKind kind() const { return kind_; }
  bool is_container() const {
    return kind_ == TreeKind::kList || kind_ == TreeKind::kTuple || kind_ == TreeKind::kDict;
  }
  // The tensor of a kTensor node; the value of a kValue node. Calling the wrong one is a fault of
  // the program (checked, fatal).
  const Tensor& tensor() const noexcept;
  const ExactValue& exact_value() const noexcept;
  const std::string& opaque_description() const { return description_; }
  const std::vector<ValueTree>& children() const { return children_; }
  // Of a dict, in the order of children(); empty otherwise.
  const std::vector<std::string>& keys() const { return keys_; }
  const ValueTree& operator[](size_t index) const { return children_[index]; }
  // Child under `key`; fatal where there is none.
  const ValueTree& operator[](std::string_view key) const noexcept;

 private:
  TreeKind kind_ = TreeKind::kNone;
  std::variant<std::monostate, Tensor, ExactValue> leaf_;
  std::vector<ValueTree> children_;
  std::vector<std::string> keys_;
  std::string description_;
};

// Path of a node in messages: source['values'][0].data
std::string ChildPath(std::string_view path, size_t index);
std::string ChildPath(std::string_view path, std::string_view key);

// Refuses what no signature admits (InvalidArgument naming the path): a leaf that is neither tensor
// nor exact value, a value without tensors or with two of one name, a dict with one key twice.
absl::Status CheckSupported(const ValueTree& tree, std::string_view path);
absl::Status CheckSupported(const ExactValue& value, std::string_view path);

// Every tensor, those of exact values included, depth first. They live as long as `tree`.
std::vector<const Tensor*> TensorsOf(const ValueTree& tree);

// Calls `visit` for every tensor, those of exact values included, depth first, with its path. Stops
// at the first error.
absl::Status ForEachTensor(
    const ValueTree& tree, std::string_view path,
    const std::function<absl::Status(const std::string& path, const Tensor& tensor)>& visit);

// The same tree with every tensor replaced by what `map` returns for it. kNone and kOpaque nodes
// stay.
absl::StatusOr<ValueTree> MapTensors(
    const ValueTree& tree, std::string_view path,
    const std::function<absl::StatusOr<Tensor>(const std::string& path, const Tensor& tensor)>&
        map);

// Sum of element_count · element size over every tensor.
int64_t ValueTreeNbytes(const ValueTree& tree);

// Refuses two tensors over one storage (InvalidArgument naming both paths); tensors without bytes
// aside.
absl::Status RefuseAliases(const ValueTree& tree, std::string_view path);

// Clones a tree of any residency into pinned host memory of `device`, synchronously; the signature
// stays. Refuses aliased leaves and unsupported leaves. `stream` carries copies of leaves that are
// on a device.
absl::StatusOr<ValueTree> PinValueTree(const ValueTree& tree, runtime::Device& device,
                                       runtime::Stream& stream);

}  // namespace cipherd::value
