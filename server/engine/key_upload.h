// Memory for a key set on its way in.
//
//   CIPHERD_ASSIGN_OR_RETURN(KeyUpload upload, store.Reserve(tenant, total_bytes));
//   CIPHERD_ASSIGN_OR_RETURN(value::Tensor tensor, upload.Allocate(shape));     // a key at a time
//   store.Commit(std::move(upload), std::move(set), [](const auto& stored) { ... });
//
// Its tenant and host memory are charged for all of it from the reservation on; dropped before it
// is committed, it gives the charges back. Move-only, used by one thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/runtime/device.h"
#include "core/value/tensor.h"
#include "server/engine/byte_budget.h"
#include "server/engine/tenant_bytes.h"

namespace cipherd::engine {

class KeyUpload {
 public:
  KeyUpload(KeyUpload&&) noexcept = default;
  KeyUpload& operator=(KeyUpload&&) noexcept = default;

  // A contiguous pinned tensor of uint64. ResourceExhausted beyond what was reserved, or where the
  // device's pinned pool has no more.
  absl::StatusOr<value::Tensor> Allocate(std::vector<int64_t> shape);

 private:
  friend class KeyStore;
  KeyUpload(runtime::Device& device, TenantBytes::Charge tenant_charge,
            ByteBudget::Charge host_charge)
      : device_(&device),
        tenant_charge_(std::move(tenant_charge)),
        host_charge_(std::move(host_charge)) {}

  runtime::Device* device_;
  TenantBytes::Charge tenant_charge_;
  ByteBudget::Charge host_charge_;
  int64_t allocated_bytes_ = 0;
};

// Pinned host memory for a key: uint64, contiguous, wiped when its last owner lets go
// (wiped_storage.h). ResourceExhausted (overloaded) where the
// device's pinned pool has no more.
absl::StatusOr<value::Tensor> AllocateKey(runtime::Device& device, std::vector<int64_t> shape);

}  // namespace cipherd::engine
