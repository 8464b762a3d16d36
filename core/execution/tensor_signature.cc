#include "core/execution/tensor_signature.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/execution/mismatch.h"

namespace cipherd::execution {
namespace {

std::string ListOf(const std::vector<int64_t>& numbers) {
  return absl::StrCat("[", absl::StrJoin(numbers, ", "), "]");
}

std::string_view ToString(bool flag) { return flag ? "true" : "false"; }

}  // namespace

TensorSignature TensorSignature::FromTensor(const value::Tensor& tensor) {
  return {tensor.shape(), tensor.strides(), tensor.dtype(), tensor.layout(),
          tensor.requires_grad()};
}

absl::Status TensorSignature::CheckSame(const TensorSignature& actual,
                                        std::string_view path) const {
  if (dtype != actual.dtype) {
    return Mismatch(path, ".dtype", value::ToString(dtype), value::ToString(actual.dtype));
  }
  if (shape != actual.shape) return Mismatch(path, ".shape", ListOf(shape), ListOf(actual.shape));
  if (strides != actual.strides) {
    return Mismatch(path, ".stride", ListOf(strides), ListOf(actual.strides));
  }
  if (layout != actual.layout) {
    return Mismatch(path, ".layout", value::ToString(layout), value::ToString(actual.layout));
  }
  if (requires_grad != actual.requires_grad) {
    return Mismatch(path, ".requires_grad", execution::ToString(requires_grad),
                    execution::ToString(actual.requires_grad));
  }
  return absl::OkStatus();
}

std::string TensorSignature::ToString() const {
  std::string text = absl::StrCat(std::string(value::ToString(dtype)), ListOf(shape));
  if (strides != value::ContiguousStrides(shape)) {
    absl::StrAppend(&text, " strides ", ListOf(strides));
  }
  if (requires_grad) absl::StrAppend(&text, " requires_grad");
  return text;
}

}  // namespace cipherd::execution
