// The structure of a tree of tensors and exact values: what fits one reusable buffer or one
// program.
//
//   CIPHERD_ASSIGN_OR_RETURN(ValueTreeSignature signature, ValueTreeSignature::FromTree(example));
//   CIPHERD_RETURN_IF_ERROR(signature.Validate(request, "source"));
//   // InvalidArgument: source['values'][0].depth: expected 3, got 2
//
// Lists, tuples and dicts nest; a list is not a tuple, and keys with their order are part of a
// dict. Scalars, strings and other control objects are no leaves: bind them in the callable
// instead. Immutable but for assignment; thread-safe like a value.
#pragma once

#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/execution/tensor_signature.h"
#include "core/execution/value_signature.h"
#include "core/value/value_tree.h"

namespace cipherd::execution {

class ValueTreeSignature {
 public:
  // An empty tuple.
  ValueTreeSignature() = default;

  static ValueTreeSignature Leaf(TensorSignature tensor);
  static ValueTreeSignature Leaf(ValueSignature value);
  static ValueTreeSignature List(std::vector<ValueTreeSignature> children);
  static ValueTreeSignature Tuple(std::vector<ValueTreeSignature> children);
  // InvalidArgument where a key comes twice.
  static absl::StatusOr<ValueTreeSignature> Dict(
      std::vector<std::pair<std::string, ValueTreeSignature>> entries);

  // The signature of `tree`, whose root is called `path` in messages. InvalidArgument for a leaf
  // that is neither tensor nor exact value, a value without tensors, a key that comes twice.
  static absl::StatusOr<ValueTreeSignature> FromTree(const value::ValueTree& tree,
                                                     std::string_view path = "value");

  // OK where `tree` has exactly this signature. Else InvalidArgument for the first mismatch, depth
  // first, with its path (the root is called `path`), what was expected and what was found. Reads
  // no payload.
  absl::Status Validate(const value::ValueTree& tree, std::string_view path = "value") const;

  // kTensor, kValue, kList, kTuple or kDict.
  value::TreeKind kind() const { return kind_; }
  // Of a kTensor or kValue node; calling the wrong one is a fault of the program (fatal).
  const TensorSignature& tensor() const noexcept;
  const ValueSignature& value() const noexcept;
  const std::vector<ValueTreeSignature>& children() const { return children_; }
  // Of a dict, in the order of children(); empty otherwise.
  const std::vector<std::string>& keys() const { return keys_; }

  bool operator==(const ValueTreeSignature&) const = default;

  // "tuple(Ciphertext{...}, list[uint64[4]], dict{'a': float64[2]})"; where `multi_line`, one node
  // or field a line, nested by two spaces.
  std::string ToString(bool multi_line = false) const;

  template <typename H>
  friend H AbslHashValue(H state, const ValueTreeSignature& signature) {
    if (signature.kind_ == value::TreeKind::kTensor) {
      state = H::combine(std::move(state), signature.tensor());
    } else if (signature.kind_ == value::TreeKind::kValue) {
      state = H::combine(std::move(state), signature.value());
    }
    return H::combine(std::move(state), signature.kind_, signature.children_, signature.keys_);
  }

 private:
  value::TreeKind kind_ = value::TreeKind::kTuple;
  std::variant<std::monostate, TensorSignature, ValueSignature> leaf_;
  std::vector<ValueTreeSignature> children_;
  std::vector<std::string> keys_;
};

inline std::ostream& operator<<(std::ostream& out, const ValueTreeSignature& signature) {
  return out << signature.ToString();
}

}  // namespace cipherd::execution
