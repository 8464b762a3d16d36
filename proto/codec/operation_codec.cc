#include "proto/codec/operation_codec.h"

#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "proto/codec/mismatch.h"

namespace cipherd::codec::internal {
namespace {

using programs::Operation;
using programs::OperationKind;

std::string At(std::string_view path, const char* field) {
  return absl::StrCat(std::string(path), field);
}

// Reads what several kinds have under the same names.
template <typename Message>
void ReadUnary(const Message& message, OperationKind kind, Operation& out) {
  out.kind = kind;
  out.a = message.a();
}
template <typename Message>
void ReadBinary(const Message& message, OperationKind kind, Operation& out) {
  ReadUnary(message, kind, out);
  out.b = message.b();
}
void ReadExpansion(const v1::SlotExpansion& message, Operation& out) {
  out.expansion.repeat = message.repeat() == 0 ? 1 : int64_t{message.repeat()};
  out.expansion.tile = message.tile();
}
template <typename Message>
void ReadPlain(const Message& message, OperationKind kind, Operation& out) {
  ReadUnary(message, kind, out);
  out.constant = message.constant();
  ReadExpansion(message.expansion(), out);
}

template <typename Message>
void WriteBinary(const Operation& operation, Message* out) {
  out->set_a(operation.a);
  out->set_b(operation.b);
}
// An expansion that is the default is left out.
template <typename Message>
absl::Status WriteExpansion(const Operation& operation, std::string_view path, Message* out) {
  if (operation.expansion == programs::SlotExpansion()) return absl::OkStatus();
  CIPHERD_ASSIGN_OR_RETURN(const uint32_t repeat,
                           ToUint32(operation.expansion.repeat, 1, At(path, ".expansion.repeat")));
  out->mutable_expansion()->set_repeat(repeat);
  out->mutable_expansion()->set_tile(operation.expansion.tile);
  return absl::OkStatus();
}
template <typename Message>
absl::Status WritePlain(const Operation& operation, std::string_view path, Message* out) {
  out->set_a(operation.a);
  out->set_constant(operation.constant);
  return WriteExpansion(operation, path, out);
}

}  // namespace

absl::StatusOr<uint32_t> ToUint32(int64_t number, int64_t least, std::string_view path) {
  constexpr int64_t kMost = std::numeric_limits<uint32_t>::max();
  if (number < least || number > kMost) {
    return Mismatch(path, "", absl::StrCat(least, " to ", kMost), absl::StrCat(number));
  }
  return static_cast<uint32_t>(number);
}

absl::StatusOr<int> ToInt(uint32_t number, std::string_view path) {
  constexpr uint32_t kMost = std::numeric_limits<int32_t>::max();
  if (number > kMost) {
    return Mismatch(path, "", absl::StrCat("at most ", kMost), absl::StrCat(number));
  }
  return static_cast<int>(number);
}

absl::StatusOr<Operation> DecodeOperation(const v1::Operation& message, std::string_view path) {
  Operation operation;
  operation.name = message.name();
  switch (message.kind_case()) {
    case v1::Operation::kAdd:
      ReadBinary(message.add(), OperationKind::kAdd, operation);
      return operation;
    case v1::Operation::kSubtract:
      ReadBinary(message.subtract(), OperationKind::kSubtract, operation);
      return operation;
    case v1::Operation::kNegate:
      ReadUnary(message.negate(), OperationKind::kNegate, operation);
      return operation;
    case v1::Operation::kAddPlain:
      ReadPlain(message.add_plain(), OperationKind::kAddPlain, operation);
      return operation;
    case v1::Operation::kSubtractPlain:
      ReadPlain(message.subtract_plain(), OperationKind::kSubtractPlain, operation);
      return operation;
    case v1::Operation::kMultiply:
      ReadBinary(message.multiply(), OperationKind::kMultiply, operation);
      return operation;
    case v1::Operation::kSquare:
      ReadUnary(message.square(), OperationKind::kSquare, operation);
      return operation;
    case v1::Operation::kMultiplyPlain:
      ReadPlain(message.multiply_plain(), OperationKind::kMultiplyPlain, operation);
      operation.scale = message.multiply_plain().scale();
      operation.result_scale = message.multiply_plain().result_scale();
      return operation;
    case v1::Operation::kRelinearize:
      ReadUnary(message.relinearize(), OperationKind::kRelinearize, operation);
      return operation;
    case v1::Operation::kRescale:
      ReadUnary(message.rescale(), OperationKind::kRescale, operation);
      operation.result_scale = message.rescale().result_scale();
      return operation;
    case v1::Operation::kDropToDepth: {
      ReadUnary(message.drop_to_depth(), OperationKind::kDropToDepth, operation);
      CIPHERD_ASSIGN_OR_RETURN(operation.depth, ToInt(message.drop_to_depth().depth(),
                                                      At(path, ".drop_to_depth.depth")));
      return operation;
    }
    case v1::Operation::kRotate:
      ReadUnary(message.rotate(), OperationKind::kRotate, operation);
      operation.step = message.rotate().step();
      return operation;
    case v1::Operation::kConjugate:
      ReadUnary(message.conjugate(), OperationKind::kConjugate, operation);
      return operation;
    case v1::Operation::kLinearTransform: {
      const v1::Operation::LinearTransform& transform = message.linear_transform();
      ReadUnary(transform, OperationKind::kLinearTransform, operation);
      operation.constant = transform.diagonals();
      operation.offsets = transform.offsets();
      operation.baby_span = transform.baby_span();
      operation.scale = transform.scale();
      operation.result_scale = transform.result_scale();
      ReadExpansion(transform.expansion(), operation);
      return operation;
    }
    case v1::Operation::KIND_NOT_SET:
      break;
  }
  return Mismatch(path, "", "a kind of operation that this build has", "none");
}

absl::Status EncodeOperation(const Operation& operation, std::string_view path,
                             v1::Operation* out) {
  out->Clear();
  out->set_name(operation.name);
  switch (operation.kind) {
    case OperationKind::kAdd:
      WriteBinary(operation, out->mutable_add());
      return absl::OkStatus();
    case OperationKind::kSubtract:
      WriteBinary(operation, out->mutable_subtract());
      return absl::OkStatus();
    case OperationKind::kNegate:
      out->mutable_negate()->set_a(operation.a);
      return absl::OkStatus();
    case OperationKind::kAddPlain:
      return WritePlain(operation, path, out->mutable_add_plain());
    case OperationKind::kSubtractPlain:
      return WritePlain(operation, path, out->mutable_subtract_plain());
    case OperationKind::kMultiply:
      WriteBinary(operation, out->mutable_multiply());
      return absl::OkStatus();
    case OperationKind::kSquare:
      out->mutable_square()->set_a(operation.a);
      return absl::OkStatus();
    case OperationKind::kMultiplyPlain:
      out->mutable_multiply_plain()->set_scale(operation.scale);
      out->mutable_multiply_plain()->set_result_scale(operation.result_scale);
      return WritePlain(operation, path, out->mutable_multiply_plain());
    case OperationKind::kRelinearize:
      out->mutable_relinearize()->set_a(operation.a);
      return absl::OkStatus();
    case OperationKind::kRescale:
      out->mutable_rescale()->set_a(operation.a);
      out->mutable_rescale()->set_result_scale(operation.result_scale);
      return absl::OkStatus();
    case OperationKind::kDropToDepth: {
      CIPHERD_ASSIGN_OR_RETURN(const uint32_t depth,
                               ToUint32(operation.depth, 0, At(path, ".drop_to_depth.depth")));
      out->mutable_drop_to_depth()->set_a(operation.a);
      out->mutable_drop_to_depth()->set_depth(depth);
      return absl::OkStatus();
    }
    case OperationKind::kRotate:
      out->mutable_rotate()->set_a(operation.a);
      out->mutable_rotate()->set_step(operation.step);
      return absl::OkStatus();
    case OperationKind::kConjugate:
      out->mutable_conjugate()->set_a(operation.a);
      return absl::OkStatus();
    case OperationKind::kLinearTransform: {
      v1::Operation::LinearTransform* transform = out->mutable_linear_transform();
      CIPHERD_ASSIGN_OR_RETURN(
          const uint32_t baby_span,
          ToUint32(operation.baby_span, 0, At(path, ".linear_transform.baby_span")));
      transform->set_a(operation.a);
      transform->set_diagonals(operation.constant);
      transform->set_offsets(operation.offsets);
      transform->set_baby_span(baby_span);
      transform->set_scale(operation.scale);
      transform->set_result_scale(operation.result_scale);
      return WriteExpansion(operation, path, transform);
    }
  }
  return Mismatch(path, ".kind", "a kind of operation",
                  absl::StrCat("number ", static_cast<int>(operation.kind)));
}

}  // namespace cipherd::codec::internal
