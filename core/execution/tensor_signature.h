// What must be equal for one tensor's bytes to be copied into another's storage.
//
//   TensorSignature signature = TensorSignature::FromTensor(tensor);
//   signature.ToString()   // "uint64[2, 3, 4096]"
//
// Where the tensor lives is left out on purpose: a host copy and a device copy of a value have
// equal signatures. The residency is decided by whoever owns the target storage. A plain value;
// thread-safe like one.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/value/tensor.h"

namespace cipherd::execution {

struct TensorSignature {
  std::vector<int64_t> shape;
  // In elements, one per dimension.
  std::vector<int64_t> strides;
  value::DType dtype = value::DType::kUint64;
  value::Layout layout = value::Layout::kStrided;
  bool requires_grad = false;

  static TensorSignature FromTensor(const value::Tensor& tensor);

  bool operator==(const TensorSignature&) const = default;

  // OK where `actual` equals this; else InvalidArgument naming the first field that differs, as in
  // `source[0].shape: expected [2, 4096], got [3, 4096]`.
  absl::Status CheckSame(const TensorSignature& actual, std::string_view path) const;

  // "uint64[2, 3]", followed by " strides [1, 2]" where not row-major and " requires_grad" where
  // set.
  std::string ToString() const;

  template <typename H>
  friend H AbslHashValue(H state, const TensorSignature& signature) {
    return H::combine(std::move(state), signature.shape, signature.strides, signature.dtype,
                      signature.layout, signature.requires_grad);
  }
};

inline std::ostream& operator<<(std::ostream& out, const TensorSignature& signature) {
  return out << signature.ToString();
}

}  // namespace cipherd::execution
