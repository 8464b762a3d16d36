#include "proto/codec/model_operation_codec.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "proto/codec/mismatch.h"

namespace cipherd::codec::internal {
namespace {

using planning::ModelKind;
using planning::ModelOperation;
using planning::Polynomial;
using planning::PolynomialBasis;
using Int64s = google::protobuf::RepeatedField<int64_t>;

constexpr std::array<int64_t, 2> kOnes = {1, 1};
constexpr std::array<int64_t, 4> kNoPads = {0, 0, 0, 0};

std::string At(std::string_view path, const char* field) {
  return absl::StrCat(std::string(path), field);
}

// `Size` numbers, or none for what `out` holds already.
template <size_t Size>
absl::Status ReadNumbers(const Int64s& numbers, const std::string& path,
                         std::array<int64_t, Size>& out) {
  if (numbers.empty()) return absl::OkStatus();
  if (numbers.size() != static_cast<int>(Size)) {
    return Mismatch(path, "", absl::StrCat(Size, " numbers"), absl::StrCat(numbers.size()));
  }
  std::copy(numbers.begin(), numbers.end(), out.begin());
  return absl::OkStatus();
}

template <size_t Size>
void WriteNumbers(const std::array<int64_t, Size>& numbers,
                  const std::array<int64_t, Size>& defaults, Int64s* out) {
  if (numbers != defaults) out->Assign(numbers.begin(), numbers.end());
}

// Reads what several kinds have under the same names.
template <typename Message>
void ReadUnary(const Message& message, ModelKind kind, ModelOperation& out) {
  out.kind = kind;
  out.a = message.a();
}
void ReadBinary(const v1::ModelOperation::Binary& message, ModelKind kind, ModelOperation& out) {
  ReadUnary(message, kind, out);
  out.b = message.b();
}
template <typename Message>
void ReadWeights(const Message& message, ModelKind kind, ModelOperation& out) {
  ReadUnary(message, kind, out);
  out.weight = message.weight();
  out.bias = message.bias();
}
void ReadWithConstant(const v1::ModelOperation::WithConstant& message, ModelKind kind,
                      ModelOperation& out) {
  ReadUnary(message, kind, out);
  out.constant = message.constant();
}
template <typename Message>
absl::Status ReadWindow(const Message& message, std::string_view path, ModelOperation& out) {
  CIPHERD_RETURN_IF_ERROR(ReadNumbers(message.strides(), At(path, ".strides"), out.strides));
  return ReadNumbers(message.pads(), At(path, ".pads"), out.pads);
}

absl::Status ReadConv2d(const v1::ModelOperation::Conv2d& message, std::string_view path,
                        ModelOperation& out) {
  ReadWeights(message, ModelKind::kConv2d, out);
  if (message.groups() != 0) out.groups = message.groups();
  CIPHERD_RETURN_IF_ERROR(ReadNumbers(message.dilations(), At(path, ".dilations"), out.dilations));
  return ReadWindow(message, path, out);
}

absl::Status ReadAveragePool2d(const v1::ModelOperation::AveragePool2d& message,
                               std::string_view path, ModelOperation& out) {
  ReadUnary(message, ModelKind::kAveragePool2d, out);
  out.count_include_pad = message.count_include_pad();
  if (message.kernel().empty()) return Mismatch(path, ".kernel", "2 numbers", "none");
  CIPHERD_RETURN_IF_ERROR(ReadNumbers(message.kernel(), At(path, ".kernel"), out.kernel));
  return ReadWindow(message, path, out);
}

absl::Status ReadPolynomial(const v1::ModelOperation::Polynomial& message, std::string_view path,
                            ModelOperation& out) {
  ReadUnary(message, ModelKind::kPolynomial, out);
  switch (message.basis()) {
    case v1::ModelOperation::BASIS_UNSPECIFIED:
    case v1::ModelOperation::BASIS_POWER:
      out.polynomial.basis = PolynomialBasis::kPower;
      break;
    case v1::ModelOperation::BASIS_CHEBYSHEV:
      out.polynomial.basis = PolynomialBasis::kChebyshev;
      break;
    default:
      return Mismatch(path, ".basis", "a basis that this build has",
                      absl::StrCat("number ", static_cast<int>(message.basis())));
  }
  out.polynomial.coefficients.assign(message.coefficients().begin(), message.coefficients().end());
  const bool is_stated = message.lower() != 0 || message.upper() != 0;
  out.polynomial.lower = is_stated ? message.lower() : -1;
  out.polynomial.upper = is_stated ? message.upper() : 1;
  return absl::OkStatus();
}

void ReadSum(const v1::ModelOperation::Sum& message, ModelOperation& out) {
  ReadUnary(message, ModelKind::kSum, out);
  out.axes.assign(message.axes().begin(), message.axes().end());
  out.keep_axes = message.keep_axes();
}

template <typename Message>
void WriteWeights(const ModelOperation& operation, Message* out) {
  out->set_a(operation.a);
  out->set_weight(operation.weight);
  out->set_bias(operation.bias);
}
void WriteBinary(const ModelOperation& operation, v1::ModelOperation::Binary* out) {
  out->set_a(operation.a);
  out->set_b(operation.b);
}
void WriteWithConstant(const ModelOperation& operation, v1::ModelOperation::WithConstant* out) {
  out->set_a(operation.a);
  out->set_constant(operation.constant);
}
template <typename Message>
void WriteWindow(const ModelOperation& operation, Message* out) {
  WriteNumbers(operation.strides, kOnes, out->mutable_strides());
  WriteNumbers(operation.pads, kNoPads, out->mutable_pads());
}

void WritePolynomial(const ModelOperation& operation, v1::ModelOperation::Polynomial* out) {
  const Polynomial& polynomial = operation.polynomial;
  out->set_a(operation.a);
  out->set_basis(polynomial.basis == PolynomialBasis::kChebyshev
                     ? v1::ModelOperation::BASIS_CHEBYSHEV
                     : v1::ModelOperation::BASIS_POWER);
  out->mutable_coefficients()->Assign(polynomial.coefficients.begin(),
                                      polynomial.coefficients.end());
  out->set_lower(polynomial.lower);
  out->set_upper(polynomial.upper);
}

}  // namespace

absl::StatusOr<ModelOperation> DecodeModelOperation(const v1::ModelOperation& message,
                                                    std::string_view path) {
  ModelOperation operation;
  operation.name = message.name();
  switch (message.kind_case()) {
    case v1::ModelOperation::kLinear:
      ReadWeights(message.linear(), ModelKind::kLinear, operation);
      return operation;
    case v1::ModelOperation::kConv2D:
      CIPHERD_RETURN_IF_ERROR(ReadConv2d(message.conv2d(), At(path, ".conv2d"), operation));
      return operation;
    case v1::ModelOperation::kAveragePool2D:
      CIPHERD_RETURN_IF_ERROR(
          ReadAveragePool2d(message.average_pool2d(), At(path, ".average_pool2d"), operation));
      return operation;
    case v1::ModelOperation::kAdd:
      ReadBinary(message.add(), ModelKind::kAdd, operation);
      return operation;
    case v1::ModelOperation::kSubtract:
      ReadBinary(message.subtract(), ModelKind::kSubtract, operation);
      return operation;
    case v1::ModelOperation::kNegate:
      ReadUnary(message.negate(), ModelKind::kNegate, operation);
      return operation;
    case v1::ModelOperation::kMultiply:
      ReadBinary(message.multiply(), ModelKind::kMultiply, operation);
      return operation;
    case v1::ModelOperation::kSquare:
      ReadUnary(message.square(), ModelKind::kSquare, operation);
      return operation;
    case v1::ModelOperation::kAddConstant:
      ReadWithConstant(message.add_constant(), ModelKind::kAddConstant, operation);
      return operation;
    case v1::ModelOperation::kMultiplyConstant:
      ReadWithConstant(message.multiply_constant(), ModelKind::kMultiplyConstant, operation);
      return operation;
    case v1::ModelOperation::kPolynomial:
      CIPHERD_RETURN_IF_ERROR(
          ReadPolynomial(message.polynomial(), At(path, ".polynomial"), operation));
      return operation;
    case v1::ModelOperation::kSum:
      ReadSum(message.sum(), operation);
      return operation;
    case v1::ModelOperation::kReshape:
      ReadUnary(message.reshape(), ModelKind::kReshape, operation);
      operation.shape.assign(message.reshape().shape().begin(), message.reshape().shape().end());
      return operation;
    case v1::ModelOperation::kSelect:
      ReadUnary(message.select(), ModelKind::kSelect, operation);
      operation.indices = message.select().indices();
      return operation;
    case v1::ModelOperation::KIND_NOT_SET:
      break;
  }
  return Mismatch(path, "", "a kind of operation that this build has", "none");
}

absl::Status EncodeModelOperation(const ModelOperation& operation, std::string_view path,
                                  v1::ModelOperation* out) {
  out->Clear();
  out->set_name(operation.name);
  switch (operation.kind) {
    case ModelKind::kLinear:
      WriteWeights(operation, out->mutable_linear());
      return absl::OkStatus();
    case ModelKind::kConv2d:
      WriteWeights(operation, out->mutable_conv2d());
      WriteWindow(operation, out->mutable_conv2d());
      WriteNumbers(operation.dilations, kOnes, out->mutable_conv2d()->mutable_dilations());
      if (operation.groups != 1) out->mutable_conv2d()->set_groups(operation.groups);
      return absl::OkStatus();
    case ModelKind::kAveragePool2d: {
      v1::ModelOperation::AveragePool2d* pool = out->mutable_average_pool2d();
      pool->set_a(operation.a);
      pool->mutable_kernel()->Assign(operation.kernel.begin(), operation.kernel.end());
      pool->set_count_include_pad(operation.count_include_pad);
      WriteWindow(operation, pool);
      return absl::OkStatus();
    }
    case ModelKind::kAdd:
      WriteBinary(operation, out->mutable_add());
      return absl::OkStatus();
    case ModelKind::kSubtract:
      WriteBinary(operation, out->mutable_subtract());
      return absl::OkStatus();
    case ModelKind::kNegate:
      out->mutable_negate()->set_a(operation.a);
      return absl::OkStatus();
    case ModelKind::kMultiply:
      WriteBinary(operation, out->mutable_multiply());
      return absl::OkStatus();
    case ModelKind::kSquare:
      out->mutable_square()->set_a(operation.a);
      return absl::OkStatus();
    case ModelKind::kAddConstant:
      WriteWithConstant(operation, out->mutable_add_constant());
      return absl::OkStatus();
    case ModelKind::kMultiplyConstant:
      WriteWithConstant(operation, out->mutable_multiply_constant());
      return absl::OkStatus();
    case ModelKind::kPolynomial:
      WritePolynomial(operation, out->mutable_polynomial());
      return absl::OkStatus();
    case ModelKind::kSum:
      out->mutable_sum()->set_a(operation.a);
      out->mutable_sum()->mutable_axes()->Assign(operation.axes.begin(), operation.axes.end());
      out->mutable_sum()->set_keep_axes(operation.keep_axes);
      return absl::OkStatus();
    case ModelKind::kReshape:
      out->mutable_reshape()->set_a(operation.a);
      out->mutable_reshape()->mutable_shape()->Assign(operation.shape.begin(),
                                                      operation.shape.end());
      return absl::OkStatus();
    case ModelKind::kSelect:
      out->mutable_select()->set_a(operation.a);
      out->mutable_select()->set_indices(operation.indices);
      return absl::OkStatus();
  }
  return Mismatch(path, ".kind", "a kind of operation",
                  absl::StrCat("number ", static_cast<int>(operation.kind)));
}

}  // namespace cipherd::codec::internal
