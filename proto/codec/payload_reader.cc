#include "proto/codec/payload_reader.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "proto/codec/mismatch.h"
#include "proto/codec/residue_check.h"

namespace cipherd::codec {
namespace {

// The canonical encoding is little-endian and is copied as it is.
static_assert(std::endian::native == std::endian::little);

// Copied, then checked, while it is in the first level of cache.
constexpr size_t kBlockBytes = size_t{16} << 10;

absl::Status CheckTarget(const TensorPlan& plan, const value::Tensor& tensor) {
  const bool fits = tensor.dtype() == plan.dtype && tensor.shape() == plan.shape &&
                    tensor.is_contiguous() && tensor.placement().is_host() &&
                    (plan.byte_count == 0 || tensor.data() != nullptr);
  if (fits) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat(plan.path, ": expected memory for a contiguous ",
                   std::string(value::ToString(plan.dtype)), internal::ListOf(plan.shape),
                   " on the host, got ", std::string(value::ToString(tensor.dtype())),
                   internal::ListOf(tensor.shape()), " on ", tensor.placement().ToString()));
}

}  // namespace

absl::StatusOr<PayloadReader> PayloadReader::Allocate(AdmittedTree admitted,
                                                      const TensorAllocator& allocate) {
  std::vector<value::Tensor> tensors;
  tensors.reserve(admitted.tensors().size());
  for (const TensorPlan& plan : admitted.tensors()) {
    CIPHERD_ASSIGN_OR_RETURN(value::Tensor tensor, allocate(plan));
    CIPHERD_RETURN_IF_ERROR(CheckTarget(plan, tensor));
    tensors.push_back(std::move(tensor));
  }
  return PayloadReader(std::move(admitted), std::move(tensors));
}

absl::StatusOr<PayloadReader> PayloadReader::Into(AdmittedTree admitted,
                                                  const value::ValueTree& storage) {
  std::vector<value::Tensor> tensors;
  for (const value::Tensor* tensor : value::TensorsOf(storage)) tensors.push_back(*tensor);
  if (tensors.size() != admitted.tensors().size()) {
    return absl::InternalError(absl::StrCat(admitted.path(), ": expected memory for ",
                                            admitted.tensors().size(), " tensors, got ",
                                            tensors.size()));
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    CIPHERD_RETURN_IF_ERROR(CheckTarget(admitted.tensors()[i], tensors[i]));
  }
  return PayloadReader(std::move(admitted), std::move(tensors));
}

PayloadReader::PayloadReader(AdmittedTree admitted, std::vector<value::Tensor> tensors)
    : admitted_(std::move(admitted)),
      tensors_(std::move(tensors)),
      remaining_bytes_(admitted_.payload_bytes()) {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    tensors_[i].set_requires_grad(admitted_.tensors()[i].requires_grad);
  }
  SkipFullTensors();
}

void PayloadReader::SkipFullTensors() {
  while (tensor_index_ < tensors_.size() &&
         offset_in_tensor_ == admitted_.tensors()[tensor_index_].byte_count) {
    ++tensor_index_;
    offset_in_tensor_ = 0;
    checked_residues_ = 0;
  }
}

absl::Status PayloadReader::Write(std::span<const uint8_t> bytes) {
  if (bytes.size() > remaining_bytes_) {
    return internal::Mismatch(
        admitted_.path(), ".payload", absl::StrCat(total_bytes(), " bytes, as declared"),
        absl::StrCat(total_bytes() - remaining_bytes_ + bytes.size(), " or more"));
  }
  while (!bytes.empty()) {
    const std::span<uint8_t> region = NextRegion();
    const size_t count = std::min({bytes.size(), region.size(), kBlockBytes});
    std::memcpy(region.data(), bytes.data(), count);
    CIPHERD_RETURN_IF_ERROR(Advance(count));
    bytes = bytes.subspan(count);
  }
  return absl::OkStatus();
}

std::span<uint8_t> PayloadReader::NextRegion() {
  if (tensor_index_ == tensors_.size()) return {};
  uint8_t* data = tensors_[tensor_index_].data_as<uint8_t>();
  return {data + offset_in_tensor_,
          admitted_.tensors()[tensor_index_].byte_count - offset_in_tensor_};
}

absl::Status PayloadReader::Advance(size_t count) {
  const size_t room = NextRegion().size();
  if (count > room) {
    return absl::InternalError(absl::StrCat(admitted_.path(), ": advanced by ", count,
                                            " bytes where there is room for ", room));
  }
  offset_in_tensor_ += count;
  remaining_bytes_ -= count;
  CheckWrittenResidues();
  SkipFullTensors();
  return absl::OkStatus();
}

void PayloadReader::CheckWrittenResidues() {
  if (tensor_index_ == tensors_.size() || !residue_status_.ok()) return;
  const TensorPlan& plan = admitted_.tensors()[tensor_index_];
  if (plan.limb_primes.empty()) return;
  const auto ring_degree = static_cast<uint64_t>(plan.shape.back());
  const uint64_t* residues = tensors_[tensor_index_].data_as<uint64_t>();
  const uint64_t end = offset_in_tensor_ / sizeof(uint64_t);
  while (checked_residues_ < end) {
    const uint64_t limb_row = checked_residues_ / ring_degree;
    const uint64_t limb_end = std::min(end, (limb_row + 1) * ring_degree);
    const size_t limb = limb_row % plan.limb_primes.size();
    const uint64_t prime = plan.limb_primes[limb];
    if (!internal::AllBelow({residues + checked_residues_, residues + limb_end}, prime)) {
      residue_status_ = internal::Mismatch(
          plan.path, absl::StrCat("[row ", limb_row, "]"),
          absl::StrCat("residues below the prime ", prime, " of limb ", limb), "one that is not");
      return;
    }
    checked_residues_ = limb_end;
  }
}

absl::StatusOr<std::optional<value::ValueTree>> PayloadReader::CompletedChild(size_t index) {
  CIPHERD_RETURN_IF_ERROR(residue_status_);
  if (!tree_.has_value()) {
    CIPHERD_ASSIGN_OR_RETURN(tree_, admitted_.Assemble(tensors_));
    size_t end = 0;
    for (const value::ValueTree& child : tree_->children()) {
      child_ends_.push_back(end += value::TensorsOf(child).size());
    }
  }
  if (index >= child_ends_.size() || tensor_index_ < child_ends_[index]) return std::nullopt;
  return (*tree_)[index];
}

absl::StatusOr<value::ValueTree> PayloadReader::Finish() && {
  if (remaining_bytes_ > 0) {
    return internal::Mismatch(admitted_.path(), ".payload",
                              absl::StrCat(total_bytes(), " bytes, as declared"),
                              absl::StrCat(total_bytes() - remaining_bytes_));
  }
  CIPHERD_RETURN_IF_ERROR(residue_status_);
  return admitted_.Assemble(std::move(tensors_));
}

}  // namespace cipherd::codec
