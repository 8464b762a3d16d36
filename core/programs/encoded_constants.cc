#include "core/programs/encoded_constants.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace cipherd::programs::internal {
namespace {

const value::Tensor& Constant(const CheckedProgram& program, const std::string& name) {
  return program.constants->find(name)->second;
}

std::vector<double> Row(const CheckedProgram& program, const Operation& operation, int64_t row) {
  return ExpandRow(Constant(program, operation.constant), row, operation.expansion,
                   program.spec.context.slot_count());
}

value::ModulusBasis BasisOf(const CheckedProgram& program, const Operation& operation) {
  if (operation.kind != OperationKind::kLinearTransform) return value::ModulusBasis::kQ;
  return program.plans.find(operation.name)->second.diagonal_basis();
}

absl::StatusOr<ckks::Plaintext> Encode(const CheckedProgram& program, const Operation& operation,
                                       const ckks::Encoder& encoder,
                                       const std::vector<double>& slots) {
  absl::StatusOr<ckks::Plaintext> plaintext = encoder.Encode(
      slots, program.edges.find(operation.a)->second.depth,
      program.constant_scales.find(operation.name)->second, BasisOf(program, operation));
  if (plaintext.ok()) return plaintext;
  return absl::Status(
      plaintext.status().code(),
      absl::StrCat("operation '", operation.name, "', constant '", operation.constant,
                   "': ", std::string(plaintext.status().message())));
}

absl::StatusOr<OperationConstants> EncodeDiagonals(const CheckedProgram& program,
                                                   const Operation& operation,
                                                   const ckks::Encoder& encoder) {
  const value::Tensor& offset_tensor = Constant(program, operation.offsets);
  const int64_t* offsets = offset_tensor.data_as<const int64_t>();
  std::map<int64_t, int64_t> giant_of;
  for (const auto& [giant, terms] : program.plans.find(operation.name)->second.giants()) {
    for (const ckks::BsgsPlan::Term& term : terms) giant_of[term.offset] = giant;
  }
  OperationConstants diagonals;
  for (int64_t row = 0; row < offset_tensor.element_count(); ++row) {
    std::vector<double> slots = Row(program, operation, row);
    // Slot j receives slot j - giant.
    std::rotate(slots.begin(), slots.end() - giant_of.at(offsets[row]), slots.end());
    CIPHERD_ASSIGN_OR_RETURN(diagonals[offsets[row]], Encode(program, operation, encoder, slots));
  }
  return diagonals;
}

}  // namespace

bool ReadsConstant(OperationKind kind) {
  switch (kind) {
    case OperationKind::kAddPlain:
    case OperationKind::kSubtractPlain:
    case OperationKind::kMultiplyPlain:
    case OperationKind::kLinearTransform:
      return true;
    default:
      return false;
  }
}

int64_t EncodedBytes(const CheckedProgram& program, const Operation& operation) {
  const ckks::ContextParameters& parameters = program.spec.context;
  const int depth = program.edges.find(operation.a)->second.depth;
  const bool with_p = BasisOf(program, operation) == value::ModulusBasis::kQP;
  const int64_t limbs = parameters.active_q_count(depth) + (with_p ? parameters.p_count() : 0);
  const int64_t rows = operation.kind == OperationKind::kLinearTransform
                           ? Constant(program, operation.offsets).element_count()
                           : 1;
  return rows * limbs * parameters.ring_degree() * static_cast<int64_t>(sizeof(uint64_t));
}

absl::StatusOr<OperationConstants> EncodeOperation(const CheckedProgram& program,
                                                   const Operation& operation,
                                                   const ckks::Encoder& encoder) {
  if (operation.kind == OperationKind::kLinearTransform) {
    return EncodeDiagonals(program, operation, encoder);
  }
  OperationConstants constants;
  CIPHERD_ASSIGN_OR_RETURN(constants[0],
                           Encode(program, operation, encoder, Row(program, operation, 0)));
  return constants;
}

absl::StatusOr<OperationConstants> ViewsOf(const OperationConstants& constants,
                                           const runtime::StoragePtr& storage,
                                           int64_t byte_offset) {
  OperationConstants views = constants;
  for (auto& [offset, plaintext] : views) {
    const int64_t bytes = plaintext.data.bytes();
    CIPHERD_ASSIGN_OR_RETURN(
        plaintext.data, value::Tensor::FromStorage(storage, byte_offset, plaintext.data.dtype(),
                                                   plaintext.data.shape()));
    byte_offset += bytes;
  }
  return views;
}

absl::StatusOr<ResidentConstants> UploadConstants(const CheckedProgram& program,
                                                  const ckks::Encoder& encoder,
                                                  runtime::Stream& stream) {
  ResidentConstants resident;
  for (const Operation& operation : program.spec.operations) {
    if (!ReadsConstant(operation.kind)) continue;
    CIPHERD_ASSIGN_OR_RETURN(const OperationConstants encoded,
                             EncodeOperation(program, operation, encoder));
    const int64_t bytes = EncodedBytes(program, operation);
    CIPHERD_ASSIGN_OR_RETURN(const runtime::StoragePtr block,
                             stream.device().Allocate(static_cast<size_t>(bytes), stream));
    CIPHERD_ASSIGN_OR_RETURN(OperationConstants views, ViewsOf(encoded, block, 0));
    for (const auto& [offset, plaintext] : encoded) {
      CIPHERD_RETURN_IF_ERROR(stream.CopyAsync(views.at(offset).data.data(), plaintext.data.data(),
                                               plaintext.data.bytes()));
    }
    // `encoded` is read until here.
    CIPHERD_RETURN_IF_ERROR(stream.Synchronize());
    resident.bytes += bytes;
    resident.by_operation.emplace(operation.name, std::move(views));
  }
  return resident;
}

}  // namespace cipherd::programs::internal
