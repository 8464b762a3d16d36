#include "server/engine/wiped_storage.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/base/status_macros.h"
#include "core/runtime/memory.h"
#include "core/runtime/stream.h"

namespace cipherd::engine {
namespace {

// memset as the compiler may not leave it out, though nobody reads the bytes again.
void Wipe(void* data, size_t bytes) {
  std::memset(data, 0, bytes);
  asm volatile("" : : "r"(data) : "memory");
}

class WipedStorage final : public runtime::Storage {
 public:
  explicit WipedStorage(runtime::StoragePtr owned)
      : Storage(owned->data(), owned->bytes(), owned->space(), owned->device()),
        owned_(std::move(owned)) {}
  ~WipedStorage() override { Wipe(data(), bytes()); }

  void RecordUse(runtime::Stream& stream) override { owned_->RecordUse(stream); }

 private:
  const runtime::StoragePtr owned_;
};

}  // namespace

absl::StatusOr<value::Tensor> WipedTensor(value::Tensor tensor) {
  runtime::StoragePtr storage = tensor.storage();
  if (storage == nullptr) return tensor;
  // Those here.
  constexpr int kOwners = 2;
  if (!storage->is_host() || !tensor.is_contiguous() || storage.use_count() > kOwners) {
    return absl::InvalidArgumentError(
        "tensor: expected a contiguous one in host memory that nobody else owns");
  }
  const value::DType dtype = tensor.dtype();
  std::vector<int64_t> shape = tensor.shape();
  return value::Tensor::FromStorage(std::make_shared<WipedStorage>(std::move(storage)), 0, dtype,
                                    std::move(shape));
}

}  // namespace cipherd::engine
