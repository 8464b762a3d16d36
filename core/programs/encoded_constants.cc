#include "core/programs/encoded_constants.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace cipherd::programs::internal {
namespace {

// Uploads plaintexts of one depth and scale as one block, and returns views of it.
absl::StatusOr<std::vector<ckks::Plaintext>> Upload(std::vector<ckks::Plaintext> plaintexts,
                                                    runtime::Stream& stream) {
  const std::vector<int64_t> shape = plaintexts.front().data.shape();
  const int64_t bytes = plaintexts.front().data.bytes();
  std::vector<int64_t> block_shape = shape;
  block_shape.insert(block_shape.begin(), static_cast<int64_t>(plaintexts.size()));
  CIPHERD_ASSIGN_OR_RETURN(
      const value::Tensor block,
      value::Tensor::AllocateOn(stream, plaintexts.front().data.dtype(), block_shape));
  std::vector<ckks::Plaintext> resident = plaintexts;
  for (size_t i = 0; i < plaintexts.size(); ++i) {
    CIPHERD_ASSIGN_OR_RETURN(resident[i].data, value::Tensor::FromStorage(
                                                   block.storage(), static_cast<int64_t>(i) * bytes,
                                                   block.dtype(), shape));
    CIPHERD_RETURN_IF_ERROR(
        stream.CopyAsync(resident[i].data.data(), plaintexts[i].data.data(), bytes));
  }
  // `plaintexts` are read until here.
  CIPHERD_RETURN_IF_ERROR(stream.Synchronize());
  return resident;
}

// Constants are encoded one operation at a time, so that the host holds one operation's.
class ConstantEncoder {
 public:
  ConstantEncoder(const CheckedProgram& program, const ckks::Encoder& encoder,
                  runtime::Stream& stream)
      : program_(program), encoder_(encoder), stream_(stream) {}

  absl::Status AddSlots(const Operation& operation) {
    CIPHERD_ASSIGN_OR_RETURN(ckks::Plaintext plaintext,
                             Encode(operation, Row(operation, 0), value::ModulusBasis::kQ));
    CIPHERD_ASSIGN_OR_RETURN(std::vector<ckks::Plaintext> resident,
                             Upload({std::move(plaintext)}, stream_));
    encoded_.bytes += resident.front().data.bytes();
    encoded_.slots.emplace(operation.name, std::move(resident.front()));
    return absl::OkStatus();
  }

  absl::Status AddDiagonals(const Operation& operation) {
    const value::Tensor& offset_tensor = Constant(operation.offsets);
    const int64_t count = offset_tensor.element_count();
    const int64_t* offsets = offset_tensor.data_as<const int64_t>();
    std::map<int64_t, int64_t> giant_of;
    const ckks::BsgsPlan& plan = program_.plans.find(operation.name)->second;
    for (const auto& [giant, terms] : plan.giants()) {
      for (const ckks::BsgsPlan::Term& term : terms) giant_of[term.offset] = giant;
    }
    std::vector<ckks::Plaintext> plaintexts;
    plaintexts.reserve(count);
    for (int64_t row = 0; row < count; ++row) {
      std::vector<double> slots = Row(operation, row);
      // Slot j receives slot j - giant.
      std::rotate(slots.begin(), slots.end() - giant_of.at(offsets[row]), slots.end());
      CIPHERD_ASSIGN_OR_RETURN(ckks::Plaintext plaintext,
                               Encode(operation, slots, plan.diagonal_basis()));
      plaintexts.push_back(std::move(plaintext));
    }
    CIPHERD_ASSIGN_OR_RETURN(std::vector<ckks::Plaintext> resident,
                             Upload(std::move(plaintexts), stream_));
    std::map<int64_t, ckks::Plaintext>& by_offset = encoded_.diagonals[operation.name];
    for (int64_t row = 0; row < count; ++row) {
      encoded_.bytes += resident[row].data.bytes();
      by_offset.emplace(offsets[row], std::move(resident[row]));
    }
    return absl::OkStatus();
  }

  EncodedConstants Take() { return std::move(encoded_); }

 private:
  const value::Tensor& Constant(const std::string& name) const {
    return program_.constants->find(name)->second;
  }

  std::vector<double> Row(const Operation& operation, int64_t row) const {
    return ExpandRow(Constant(operation.constant), row, operation.expansion,
                     program_.spec.context.slot_count());
  }

  absl::StatusOr<ckks::Plaintext> Encode(const Operation& operation,
                                         const std::vector<double>& slots,
                                         value::ModulusBasis basis) const {
    absl::StatusOr<ckks::Plaintext> plaintext =
        encoder_.Encode(slots, program_.edges.find(operation.a)->second.depth,
                        program_.constant_scales.find(operation.name)->second, basis);
    if (plaintext.ok()) return plaintext;
    return absl::Status(
        plaintext.status().code(),
        absl::StrCat("operation '", operation.name, "', constant '", operation.constant,
                     "': ", std::string(plaintext.status().message())));
  }

  const CheckedProgram& program_;
  const ckks::Encoder& encoder_;
  runtime::Stream& stream_;
  EncodedConstants encoded_;
};

}  // namespace

absl::StatusOr<EncodedConstants> EncodeConstants(const CheckedProgram& program,
                                                 const ckks::Encoder& encoder,
                                                 runtime::Stream& stream) {
  ConstantEncoder constants(program, encoder, stream);
  for (const Operation& operation : program.spec.operations) {
    switch (operation.kind) {
      case OperationKind::kAddPlain:
      case OperationKind::kSubtractPlain:
      case OperationKind::kMultiplyPlain:
        CIPHERD_RETURN_IF_ERROR(constants.AddSlots(operation));
        break;
      case OperationKind::kLinearTransform:
        CIPHERD_RETURN_IF_ERROR(constants.AddDiagonals(operation));
        break;
      default:
        break;
    }
  }
  return constants.Take();
}

}  // namespace cipherd::programs::internal
