// What each tenant has of a tier measured in bytes, and may have at most: a byte budget for each.
//
//   CIPHERD_ASSIGN_OR_RETURN(TenantBytes::Charge charge, tenants.Reserve("alice", total_bytes));
//   // given back when `charge` dies
//
// Thread-safe. Outlives its charges.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace cipherd::engine {

class TenantBytes {
 public:
  class Charge {
   public:
    Charge() = default;
    Charge(Charge&& other) noexcept
        : owner_(std::exchange(other.owner_, nullptr)),
          tenant_(std::move(other.tenant_)),
          bytes_(std::exchange(other.bytes_, 0)) {}
    Charge& operator=(Charge&& other) noexcept;
    ~Charge() { ShrinkTo(0); }

    const std::string& tenant() const { return tenant_; }
    int64_t bytes() const { return bytes_; }
    // Gives back what is above `bytes`, which is at most what it has.
    void ShrinkTo(int64_t bytes);

   private:
    friend class TenantBytes;
    Charge(TenantBytes* owner, std::string tenant, int64_t bytes)
        : owner_(owner), tenant_(std::move(tenant)), bytes_(bytes) {}

    TenantBytes* owner_ = nullptr;
    std::string tenant_;
    int64_t bytes_ = 0;
  };

  // `limit_bytes` is of each tenant.
  explicit TenantBytes(int64_t limit_bytes) : limit_bytes_(limit_bytes) {}
  TenantBytes(const TenantBytes&) = delete;
  TenantBytes& operator=(const TenantBytes&) = delete;

  // Charges `bytes` >= 0, wholly or not at all. ResourceExhausted (overloaded) naming asked and
  // available bytes.
  absl::StatusOr<Charge> Reserve(std::string_view tenant, int64_t bytes) ABSL_LOCKS_EXCLUDED(mu_);
  // Charges what is there already, whatever the limit.
  Charge Adopt(std::string_view tenant, int64_t bytes) ABSL_LOCKS_EXCLUDED(mu_);

  int64_t used_bytes(std::string_view tenant) const ABSL_LOCKS_EXCLUDED(mu_);
  // Negative where more was adopted than the limit.
  int64_t available_bytes(std::string_view tenant) const {
    return limit_bytes_ - used_bytes(tenant);
  }

 private:
  int64_t UsedBytes(std::string_view tenant) const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  void Release(const std::string& tenant, int64_t bytes) ABSL_LOCKS_EXCLUDED(mu_);

  const int64_t limit_bytes_;
  mutable absl::Mutex mu_;
  // Those that have any.
  std::map<std::string, int64_t, std::less<>> used_bytes_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cipherd::engine
