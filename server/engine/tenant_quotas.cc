#include "server/engine/tenant_quotas.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "server/engine/failure_reason.h"

namespace cipherd::engine {
namespace {

// For a quota that frees up when a request ends: about the time of a few requests.
constexpr absl::Duration kRetryDelay = absl::Milliseconds(100);
// Quiet tenants are looked for when there are more than this.
constexpr size_t kRememberedTenants = 1024;

}  // namespace

absl::Status TenantQuotaOptions::Validate() const {
  if (max_requests < 0 || max_request_bytes < 0 || !(requests_per_second >= 0) ||
      !(request_burst >= 0)) {
    return absl::InvalidArgumentError("engine.quotas: expected numbers of at least 0");
  }
  if (request_burst > 0 && requests_per_second == 0) {
    return absl::InvalidArgumentError(
        "engine.quotas.request_burst: expected requests_per_second with it");
  }
  return absl::OkStatus();
}

TenantQuotas::Admission& TenantQuotas::Admission::operator=(Admission&& other) noexcept {
  if (this != &other) {
    Release();
    quotas_ = std::exchange(other.quotas_, nullptr);
    tenant_ = std::move(other.tenant_);
    bytes_ = other.bytes_;
  }
  return *this;
}

void TenantQuotas::Admission::Release() {
  if (TenantQuotas* quotas = std::exchange(quotas_, nullptr)) quotas->Release(tenant_, bytes_);
}

double TenantQuotas::burst() const {
  // Unless it is set, what a second brings.
  return std::max(
      1.0, options_.request_burst > 0 ? options_.request_burst : options_.requests_per_second);
}

void TenantQuotas::Refill(Usage& usage, absl::Time now) const {
  const double seconds = std::max(0.0, absl::ToDoubleSeconds(now - usage.refilled_at));
  usage.tokens = std::min(burst(), usage.tokens + seconds * options_.requests_per_second);
  usage.refilled_at = now;
}

void TenantQuotas::ForgetQuiet(absl::Time now) {
  std::erase_if(usages_, [&](const auto& entry) {
    Usage usage = entry.second;
    if (usage.requests > 0) return false;
    Refill(usage, now);
    return options_.requests_per_second == 0 || usage.tokens >= burst();
  });
}

absl::Status TenantQuotas::Refuse(std::string_view what, absl::Duration retry_delay) {
  ++refusal_count_;
  return WithRetryDelay(
      WithReason(absl::ResourceExhaustedError(absl::StrCat("quota: ", std::string(what))),
                 FailureReason::kOverloaded),
      retry_delay);
}

absl::StatusOr<TenantQuotas::Admission> TenantQuotas::Admit(std::string_view tenant,
                                                            int64_t bytes) {
  if (options_.max_request_bytes > 0 && bytes > options_.max_request_bytes) {
    return WithReason(absl::ResourceExhaustedError(
                          absl::StrCat("quota: a request of ", bytes, " bytes; a tenant may have ",
                                       options_.max_request_bytes, " in flight")),
                      FailureReason::kLimitExceeded);
  }
  const absl::Time now = clock_.Now();
  absl::MutexLock lock(&mu_);
  if (usages_.size() >= kRememberedTenants) ForgetQuiet(now);
  const auto [it, is_new] = usages_.try_emplace(std::string(tenant));
  Usage& usage = it->second;
  if (is_new) {
    usage.tokens = burst();
    usage.refilled_at = now;
  }
  Refill(usage, now);
  if (options_.max_requests > 0 && usage.requests >= options_.max_requests) {
    return Refuse(absl::StrCat(usage.requests, " requests of the tenant are in flight"),
                  kRetryDelay);
  }
  if (options_.max_request_bytes > 0 && bytes > options_.max_request_bytes - usage.bytes) {
    return Refuse(absl::StrCat("asked for ", bytes, " bytes, ", usage.bytes, " of ",
                               options_.max_request_bytes, " of the tenant are in flight"),
                  kRetryDelay);
  }
  if (options_.requests_per_second > 0) {
    if (usage.tokens < 1) {
      return Refuse(absl::StrCat("more than ", options_.requests_per_second,
                                 " requests a second of the tenant"),
                    absl::Seconds((1 - usage.tokens) / options_.requests_per_second));
    }
    usage.tokens -= 1;
  }
  ++usage.requests;
  usage.bytes += bytes;
  return Admission(this, std::string(tenant), bytes);
}

void TenantQuotas::Release(const std::string& tenant, int64_t bytes) {
  absl::MutexLock lock(&mu_);
  const auto it = usages_.find(tenant);
  --it->second.requests;
  it->second.bytes -= bytes;
  // With a rate, what was spent is remembered.
  if (it->second.requests == 0 && options_.requests_per_second == 0) usages_.erase(it);
}

size_t TenantQuotas::tenant_count() const {
  absl::MutexLock lock(&mu_);
  return usages_.size();
}

uint64_t TenantQuotas::refusal_count() const {
  absl::MutexLock lock(&mu_);
  return refusal_count_;
}

}  // namespace cipherd::engine
