#include "core/value/tensor.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/checked_math.h"
#include "core/base/status_macros.h"

namespace cipherd::value {
namespace {

using ::cipherd::base::CheckedAdd;
using ::cipherd::base::CheckedElementCount;
using ::cipherd::base::CheckedMultiply;

std::string ListOf(const std::vector<int64_t>& numbers) {
  return absl::StrCat("[", absl::StrJoin(numbers, ", "), "]");
}

// Bytes from the first element to the end of the last one; nothing where a dimension or stride is
// negative or the result exceeds 63 bits. `shape` and `strides` are of one length.
std::optional<int64_t> ExtentBytes(DType dtype, const std::vector<int64_t>& shape,
                                   const std::vector<int64_t>& strides) {
  bool has_elements = true;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < 0 || strides[i] < 0) return std::nullopt;
    if (shape[i] == 0) has_elements = false;
  }
  // Their strides lead nowhere, whatever they are.
  if (!has_elements) return 0;
  uint64_t last_index = 0;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] < 2) continue;
    std::optional<uint64_t> span =
        CheckedMultiply(static_cast<uint64_t>(shape[i] - 1), static_cast<uint64_t>(strides[i]));
    if (!span.has_value()) return std::nullopt;
    std::optional<uint64_t> next = CheckedAdd(last_index, *span);
    if (!next.has_value() || *next >= uint64_t{INT64_MAX}) return std::nullopt;
    last_index = *next;
  }
  std::optional<uint64_t> bytes =
      CheckedMultiply(last_index + 1, static_cast<uint64_t>(ElementBytes(dtype)));
  if (!bytes.has_value() || *bytes > uint64_t{INT64_MAX}) return std::nullopt;
  return static_cast<int64_t>(*bytes);
}

// element count · element size, or InvalidArgument where that is no size.
absl::StatusOr<size_t> PayloadBytes(DType dtype, const std::vector<int64_t>& shape) {
  std::optional<int64_t> count = CheckedElementCount(shape);
  std::optional<uint64_t> bytes;
  if (count.has_value()) {
    bytes =
        CheckedMultiply(static_cast<uint64_t>(*count), static_cast<uint64_t>(ElementBytes(dtype)));
  }
  if (!bytes.has_value() || *bytes > uint64_t{INT64_MAX}) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor shape ", ListOf(shape), " is negative or exceeds 2^63 - 1 bytes"));
  }
  return static_cast<size_t>(*bytes);
}

}  // namespace

int64_t ElementBytes(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
      return 1;
    case DType::kInt32:
    case DType::kUint32:
    case DType::kFloat32:
      return 4;
    case DType::kInt64:
    case DType::kUint64:
    case DType::kFloat64:
      return 8;
    case DType::kComplex128:
      return 16;
  }
  return 0;
}

std::string_view ToString(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
      return "uint8";
    case DType::kInt32:
      return "int32";
    case DType::kUint32:
      return "uint32";
    case DType::kInt64:
      return "int64";
    case DType::kUint64:
      return "uint64";
    case DType::kFloat32:
      return "float32";
    case DType::kFloat64:
      return "float64";
    case DType::kComplex128:
      return "complex128";
  }
  return "unknown dtype";
}

std::string_view ToString(Layout layout) {
  switch (layout) {
    case Layout::kStrided:
      return "strided";
  }
  return "unknown layout";
}

std::string Placement::ToString() const { return is_host() ? "host" : device->id().ToString(); }

std::vector<int64_t> ContiguousStrides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    // A dimension of 0 leaves no element to stride over, and counts as 1. With one, the product of
    // the others may exceed 2^63 - 1: then no stride is right, none is used, and the largest that
    // fits stands for it.
    if (shape[i] > 1 && __builtin_mul_overflow(stride, shape[i], &stride)) stride = INT64_MAX;
  }
  return strides;
}

absl::StatusOr<Tensor> Tensor::FromStorage(runtime::StoragePtr storage, int64_t byte_offset,
                                           DType dtype, std::vector<int64_t> shape,
                                           std::vector<int64_t> strides) {
  if (storage == nullptr) return absl::InvalidArgumentError("tensor without storage");
  if (shape.size() != strides.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor has ", shape.size(), " dimensions but ", strides.size(), " strides"));
  }
  CIPHERD_RETURN_IF_ERROR(PayloadBytes(dtype, shape).status());
  std::optional<int64_t> extent = ExtentBytes(dtype, shape, strides);
  if (!extent.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("tensor strides ", ListOf(strides), " of shape ",
                                                   ListOf(shape),
                                                   " are negative or exceed 2^63 - 1 bytes"));
  }
  if (byte_offset < 0 || byte_offset % ElementBytes(dtype) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("tensor offset: expected a multiple of ",
                                                   ElementBytes(dtype), " bytes, got ",
                                                   byte_offset));
  }
  // byte_offset and extent are below 2^63, so that their sum fits.
  const uint64_t end = static_cast<uint64_t>(byte_offset) + static_cast<uint64_t>(*extent);
  if (end > storage->bytes()) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor of shape ", ListOf(shape), " and strides ", ListOf(strides),
                     " ends at byte ", end, " of a storage of ", storage->bytes()));
  }
  Tensor tensor;
  tensor.storage_ = std::move(storage);
  tensor.byte_offset_ = byte_offset;
  tensor.dtype_ = dtype;
  tensor.shape_ = std::move(shape);
  tensor.strides_ = std::move(strides);
  return tensor;
}

absl::StatusOr<Tensor> Tensor::FromStorage(runtime::StoragePtr storage, int64_t byte_offset,
                                           DType dtype, std::vector<int64_t> shape) {
  // Before strides are multiplied out.
  CIPHERD_RETURN_IF_ERROR(PayloadBytes(dtype, shape).status());
  std::vector<int64_t> strides = ContiguousStrides(shape);
  return FromStorage(std::move(storage), byte_offset, dtype, std::move(shape), std::move(strides));
}

absl::StatusOr<Tensor> Tensor::AllocateHost(DType dtype, std::vector<int64_t> shape) {
  CIPHERD_ASSIGN_OR_RETURN(size_t bytes, PayloadBytes(dtype, shape));
  CIPHERD_ASSIGN_OR_RETURN(runtime::StoragePtr storage, runtime::AllocatePageable(bytes));
  return FromStorage(std::move(storage), 0, dtype, std::move(shape));
}

absl::StatusOr<Tensor> Tensor::AllocatePinned(runtime::Device& device, DType dtype,
                                              std::vector<int64_t> shape) {
  CIPHERD_ASSIGN_OR_RETURN(size_t bytes, PayloadBytes(dtype, shape));
  CIPHERD_ASSIGN_OR_RETURN(runtime::StoragePtr storage, device.AllocatePinned(bytes));
  return FromStorage(std::move(storage), 0, dtype, std::move(shape));
}

absl::StatusOr<Tensor> Tensor::AllocateOn(runtime::Stream& stream, DType dtype,
                                          std::vector<int64_t> shape) {
  CIPHERD_ASSIGN_OR_RETURN(size_t bytes, PayloadBytes(dtype, shape));
  CIPHERD_ASSIGN_OR_RETURN(runtime::StoragePtr storage, stream.device().Allocate(bytes, stream));
  return FromStorage(std::move(storage), 0, dtype, std::move(shape));
}

int64_t Tensor::element_count() const {
  int64_t count = 1;
  for (int64_t dim : shape_) {
    if (dim == 0) return 0;
  }
  for (int64_t dim : shape_) count *= dim;
  return count;
}

bool Tensor::is_contiguous() const {
  if (element_count() == 0) return true;
  int64_t expected = 1;
  for (size_t i = shape_.size(); i-- > 0;) {
    // The stride of a dimension of one element is never used.
    if (shape_[i] == 1) continue;
    if (strides_[i] != expected) return false;
    expected *= shape_[i];
  }
  return true;
}

int64_t Tensor::extent_bytes() const { return *ExtentBytes(dtype_, shape_, strides_); }

void* Tensor::data() const {
  if (storage_ == nullptr || element_count() == 0) return nullptr;
  return static_cast<std::byte*>(storage_->data()) + byte_offset_;
}

Placement Tensor::placement() const {
  if (storage_ == nullptr || storage_->is_host()) return Placement::Host();
  return Placement::On(*storage_->device());
}

bool Tensor::is_pinned() const {
  return storage_ != nullptr && storage_->space() == runtime::MemorySpace::kPinned;
}

}  // namespace cipherd::value
