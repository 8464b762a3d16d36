// What one tenant may have under way, so that others get through.
//
//   CIPHERD_ASSIGN_OR_RETURN(TenantQuotas::Admission admission, quotas.Admit(tenant, bytes));
//   ... given back when `admission` dies
//
// Bounds requests in flight, their bytes, and, by a token bucket, how often they come. A refusal is
// ResourceExhausted (overloaded) and says when to try again (RetryDelayOf). Quotas of key bytes are
// the key store's. Thread-safe; outlives its admissions. Remembers only tenants who have something
// in flight or spent tokens.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/clock.h"

namespace cipherd::engine {

// Of each tenant; 0 is no bound.
struct TenantQuotaOptions {
  // Between header and end of reply.
  int max_requests = 0;
  // Inputs and outputs of those.
  int64_t max_request_bytes = 0;
  // In the long run, and at once after a quiet time: at least 1, and what a second brings unless it
  // is set.
  double requests_per_second = 0;
  double request_burst = 0;

  absl::Status Validate() const;
};

class TenantQuotas {
 public:
  class Admission {
   public:
    Admission() = default;
    Admission(Admission&& other) noexcept
        : quotas_(std::exchange(other.quotas_, nullptr)),
          tenant_(std::move(other.tenant_)),
          bytes_(other.bytes_) {}
    Admission& operator=(Admission&& other) noexcept;
    ~Admission() { Release(); }

    // Idempotent.
    void Release();

   private:
    friend class TenantQuotas;
    Admission(TenantQuotas* quotas, std::string tenant, int64_t bytes)
        : quotas_(quotas), tenant_(std::move(tenant)), bytes_(bytes) {}

    TenantQuotas* quotas_ = nullptr;
    std::string tenant_;
    int64_t bytes_ = 0;
  };

  TenantQuotas(const TenantQuotaOptions& options, const base::Clock& clock)
      : options_(options), clock_(clock) {}
  TenantQuotas(const TenantQuotas&) = delete;
  TenantQuotas& operator=(const TenantQuotas&) = delete;

  // For one request of `bytes`. ResourceExhausted; a request that no quota will ever hold is a
  // limit exceeded.
  absl::StatusOr<Admission> Admit(std::string_view tenant, int64_t bytes) ABSL_LOCKS_EXCLUDED(mu_);

  // Tenants that are remembered.
  size_t tenant_count() const ABSL_LOCKS_EXCLUDED(mu_);
  // Requests that had to be refused because their tenant had as many, or came as often, as it may.
  uint64_t refusal_count() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Usage {
    int requests = 0;
    int64_t bytes = 0;
    // As of `refilled_at`.
    double tokens = 0;
    absl::Time refilled_at;
  };

  double burst() const;
  void Refill(Usage& usage, absl::Time now) const;
  void ForgetQuiet(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Release(const std::string& tenant, int64_t bytes) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status Refuse(std::string_view what, absl::Duration retry_delay)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const TenantQuotaOptions options_;
  const base::Clock& clock_;
  mutable absl::Mutex mu_;
  std::map<std::string, Usage, std::less<>> usages_ ABSL_GUARDED_BY(mu_);
  uint64_t refusal_count_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace cipherd::engine
