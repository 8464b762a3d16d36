#include "proto/codec/tensor_admission.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/checked_math.h"
#include "core/runtime/memory.h"
#include "proto/codec/enum_codec.h"
#include "proto/codec/mismatch.h"

namespace cipherd::codec::internal {
namespace {

class AnnouncedStorage final : public runtime::Storage {
 public:
  explicit AnnouncedStorage(size_t bytes)
      : Storage(nullptr, bytes, runtime::MemorySpace::kPageable, nullptr) {}
  void RecordUse(runtime::Stream&) override {}
};

}  // namespace

absl::Status CheckTensorCaps(const v1::Tensor& message, uint64_t max_bytes,
                             const WireLimits& limits, std::string_view path) {
  if (message.shape_size() > limits.max_rank) {
    return AboveLimit(path, ".rank", static_cast<uint64_t>(limits.max_rank),
                      static_cast<uint64_t>(message.shape_size()));
  }
  if (message.byte_count() > max_bytes) {
    return AboveLimit(path, ".byte_count", max_bytes, message.byte_count());
  }
  return absl::OkStatus();
}

absl::StatusOr<TensorPlan> ReadTensorSchema(const v1::Tensor& message, std::string_view path) {
  const std::optional<value::DType> dtype = FromWire<value::DType>(message.dtype());
  if (!dtype.has_value()) {
    return Mismatch(path, ".dtype", absl::StrCat("1 to ", WireEnum<value::DType>::kLast),
                    absl::StrCat(static_cast<int>(message.dtype())));
  }
  switch (message.encoding()) {
    case v1::ENCODING_CANONICAL:
      break;
    case v1::ENCODING_PACKED:
    case v1::ENCODING_SEEDED:
      return RefuseUnsupported(
          absl::StrCat(std::string(path), ".encoding"),
          absl::StrCat("expected ENCODING_CANONICAL, got ", v1::Encoding_Name(message.encoding()),
                       ", which is not implemented"));
    default:
      return Mismatch(path, ".encoding", "ENCODING_CANONICAL (1)",
                      absl::StrCat(static_cast<int>(message.encoding())));
  }
  TensorPlan plan;
  plan.path = std::string(path);
  plan.dtype = *dtype;
  plan.shape.assign(message.shape().begin(), message.shape().end());
  plan.requires_grad = message.requires_grad();
  plan.byte_count = message.byte_count();
  return plan;
}

absl::Status CheckByteCount(const TensorPlan& plan, int64_t least_dimension) {
  for (int64_t dimension : plan.shape) {
    if (dimension < least_dimension) {
      return Mismatch(plan.path, ".shape", absl::StrCat("dimensions of at least ", least_dimension),
                      ListOf(plan.shape));
    }
  }
  // Strides are products of dimensions, too, and must fit where a dimension of 0 leaves no element:
  // so the product counts a 0 as 1.
  std::vector<int64_t> extents = plan.shape;
  std::replace(extents.begin(), extents.end(), int64_t{0}, int64_t{1});
  const bool is_empty = extents != plan.shape;
  const std::optional<int64_t> count = base::CheckedElementCount(extents);
  std::optional<uint64_t> bytes;
  if (count.has_value()) {
    bytes = base::CheckedMultiply(static_cast<uint64_t>(*count),
                                  static_cast<uint64_t>(value::ElementBytes(plan.dtype)));
  }
  if (!bytes.has_value() || *bytes > uint64_t{INT64_MAX}) {
    return Mismatch(plan.path, ".shape", "a size below 2^63 bytes", ListOf(plan.shape));
  }
  if (is_empty) bytes = 0;
  if (*bytes != plan.byte_count) {
    return Mismatch(
        plan.path, ".byte_count",
        absl::StrCat(*bytes, " for ", std::string(value::ToString(plan.dtype)), ListOf(plan.shape)),
        absl::StrCat(plan.byte_count));
  }
  return absl::OkStatus();
}

value::Tensor AnnouncedTensor(const TensorPlan& plan) {
  // Cannot fail: CheckByteCount has seen shape and size.
  value::Tensor tensor = *value::Tensor::FromStorage(
      std::make_shared<AnnouncedStorage>(static_cast<size_t>(plan.byte_count)), 0, plan.dtype,
      plan.shape);
  tensor.set_requires_grad(plan.requires_grad);
  return tensor;
}

}  // namespace cipherd::codec::internal
