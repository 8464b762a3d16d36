#include "core/programs/placeholder_key.h"

#include "core/base/status_macros.h"
#include "core/ckks/key_set.h"

namespace cipherd::programs {

absl::StatusOr<std::shared_ptr<const PlaceholderKey>> PlaceholderKey::Make(
    const ckks::DeviceContext& device_context, runtime::Stream& stream) {
  const int64_t bytes = ckks::EvaluationKeyBytes(device_context.parameters());
  CIPHERD_ASSIGN_OR_RETURN(
      value::Tensor data,
      value::Tensor::AllocateOn(stream, value::DType::kUint64,
                                {bytes / static_cast<int64_t>(sizeof(uint64_t))}));
  CIPHERD_RETURN_IF_ERROR(stream.FillAsync(data.data(), 0, data.bytes()));
  CIPHERD_RETURN_IF_ERROR(stream.Synchronize());
  return std::shared_ptr<const PlaceholderKey>(
      new PlaceholderKey(device_context.context().id(), std::move(data)));
}

}  // namespace cipherd::programs
