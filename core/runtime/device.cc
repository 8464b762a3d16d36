#include "core/runtime/device.h"

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/runtime/cuda/cuda_device.h"
#include "core/runtime/host/host_device.h"

namespace cipherd::runtime {
namespace {

constexpr size_t kSlabAlignment = 256;
constexpr size_t kMaxSlabBytes = size_t{1} << 30;
constexpr size_t kMaxBudgetBytes = size_t{1} << 62;

absl::Status Invalid(std::string_view field, std::string_view expected, size_t actual) {
  return absl::InvalidArgumentError(
      absl::StrCat(std::string(field), ": expected ", std::string(expected), ", got ", actual));
}

absl::Status WithPrefix(std::string_view prefix, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat(std::string(prefix), std::string(status.message())));
}

}  // namespace

absl::Status PoolOptions::Validate() const {
  if (slab_bytes == 0 || slab_bytes > kMaxSlabBytes || slab_bytes % kSlabAlignment != 0) {
    return Invalid("slab_bytes", "a multiple of 256 up to 1 GiB", slab_bytes);
  }
  if (budget_bytes > kMaxBudgetBytes) {
    return Invalid("budget_bytes", "at most 2^62", budget_bytes);
  }
  if (initial_bytes > budget_bytes) {
    return Invalid("initial_bytes", absl::StrCat("at most the budget of ", budget_bytes),
                   initial_bytes);
  }
  return absl::OkStatus();
}

absl::Status DeviceOptions::Validate() const {
  CIPHERD_RETURN_IF_ERROR(WithPrefix("device_memory.", device_memory.Validate()));
  return WithPrefix("pinned_memory.", pinned_memory.Validate());
}

absl::StatusOr<std::unique_ptr<Device>> OpenDevice(std::string_view spec,
                                                   const DeviceOptions& options) {
  DeviceId id;
  if (spec == "auto") {
    if (CudaDeviceCount() > 0) id.kind = DeviceId::Kind::kCuda;
  } else {
    CIPHERD_ASSIGN_OR_RETURN(id, DeviceId::Parse(spec));
  }
  if (id.kind == DeviceId::Kind::kCuda) return cuda::OpenCudaDevice(id.ordinal, options);
  return host::HostDevice::OpenCpu(options, id.ordinal);
}

}  // namespace cipherd::runtime
