#include "server/engine/tenant_bytes.h"

#include "absl/strings/str_cat.h"
#include "server/engine/failure_reason.h"

namespace cipherd::engine {

TenantBytes::Charge& TenantBytes::Charge::operator=(Charge&& other) noexcept {
  if (this != &other) {
    ShrinkTo(0);
    owner_ = std::exchange(other.owner_, nullptr);
    tenant_ = std::move(other.tenant_);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

void TenantBytes::Charge::ShrinkTo(int64_t bytes) {
  if (owner_ == nullptr) return;
  owner_->Release(tenant_, std::exchange(bytes_, bytes) - bytes);
}

absl::StatusOr<TenantBytes::Charge> TenantBytes::Reserve(std::string_view tenant, int64_t bytes) {
  absl::MutexLock lock(&mu_);
  const int64_t available_bytes = limit_bytes_ - UsedBytes(tenant);
  if (bytes > available_bytes) {
    return WithReason(absl::ResourceExhaustedError(
                          absl::StrCat("key sets of the tenant: asked for ", bytes, " bytes, ",
                                       available_bytes, " of ", limit_bytes_, " are available")),
                      FailureReason::kOverloaded);
  }
  std::string name(tenant);
  used_bytes_[name] += bytes;
  return Charge(this, std::move(name), bytes);
}

TenantBytes::Charge TenantBytes::Adopt(std::string_view tenant, int64_t bytes) {
  std::string name(tenant);
  absl::MutexLock lock(&mu_);
  used_bytes_[name] += bytes;
  return Charge(this, std::move(name), bytes);
}

int64_t TenantBytes::used_bytes(std::string_view tenant) const {
  absl::MutexLock lock(&mu_);
  return UsedBytes(tenant);
}

int64_t TenantBytes::UsedBytes(std::string_view tenant) const {
  const auto it = used_bytes_.find(tenant);
  return it == used_bytes_.end() ? 0 : it->second;
}

void TenantBytes::Release(const std::string& tenant, int64_t bytes) {
  absl::MutexLock lock(&mu_);
  const auto it = used_bytes_.find(tenant);
  if (it == used_bytes_.end()) return;
  it->second -= bytes;
  if (it->second == 0) used_bytes_.erase(it);
}

}  // namespace cipherd::engine
