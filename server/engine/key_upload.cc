#include "server/engine/key_upload.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "core/base/checked_math.h"
#include "core/base/status_macros.h"
#include "server/engine/failure_reason.h"
#include "server/engine/wiped_storage.h"

namespace cipherd::engine {

absl::StatusOr<value::Tensor> KeyUpload::Allocate(std::vector<int64_t> shape) {
  const std::optional<int64_t> count = base::CheckedElementCount(shape);
  const int64_t available = host_charge_.bytes() - allocated_bytes_;
  if (!count.has_value() || *count > available / value::ElementBytes(value::DType::kUint64)) {
    return WithReason(
        absl::ResourceExhaustedError(absl::StrCat("key set: a key is larger than the ", available,
                                                  " bytes that are left of those declared")),
        FailureReason::kLimitExceeded);
  }
  CIPHERD_ASSIGN_OR_RETURN(value::Tensor tensor, AllocateKey(*device_, std::move(shape)));
  allocated_bytes_ += tensor.bytes();
  return tensor;
}

absl::StatusOr<value::Tensor> AllocateKey(runtime::Device& device, std::vector<int64_t> shape) {
  absl::StatusOr<value::Tensor> tensor =
      value::Tensor::AllocatePinned(device, value::DType::kUint64, std::move(shape));
  if (tensor.ok()) return WipedTensor(*std::move(tensor));
  return WithReason(absl::ResourceExhaustedError(tensor.status().message()),
                    FailureReason::kOverloaded);
}

}  // namespace cipherd::engine
