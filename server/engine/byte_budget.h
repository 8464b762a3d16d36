// A limit on bytes that is charged before anything is allocated.
//
//   CIPHERD_ASSIGN_OR_RETURN(ByteBudget::Charge charge, budget.Reserve(header.total_bytes));
//   // allocate; the charge is given back when `charge` dies
//
// Thread-safe. The budget outlives its charges.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace cipherd::engine {

class ByteBudget {
 public:
  class Charge {
   public:
    Charge() = default;
    Charge(Charge&& other) noexcept
        : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    Charge& operator=(Charge&& other) noexcept {
      if (this != &other) {
        Release();
        budget_ = std::exchange(other.budget_, nullptr);
        bytes_ = std::exchange(other.bytes_, 0);
      }
      return *this;
    }
    ~Charge() { Release(); }

    int64_t bytes() const { return bytes_; }
    // Gives back all but `bytes`; nothing where it has no more than those.
    void ShrinkTo(int64_t bytes);
    void Release();

   private:
    friend class ByteBudget;
    Charge(ByteBudget* budget, int64_t bytes) : budget_(budget), bytes_(bytes) {}

    ByteBudget* budget_ = nullptr;
    int64_t bytes_ = 0;
  };

  // `label` names the budget in errors.
  ByteBudget(std::string_view label, int64_t limit_bytes)
      : label_(label), limit_bytes_(limit_bytes) {}
  ByteBudget(const ByteBudget&) = delete;
  ByteBudget& operator=(const ByteBudget&) = delete;

  // Charges `bytes` ≥ 0, wholly or not at all. ResourceExhausted naming asked and available bytes:
  // overloaded, or a limit where `bytes` could never be had.
  absl::StatusOr<Charge> Reserve(int64_t bytes);

  int64_t limit_bytes() const { return limit_bytes_; }
  int64_t used_bytes() const;

 private:
  const std::string label_;
  const int64_t limit_bytes_;
  mutable absl::Mutex mu_;
  int64_t used_bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace cipherd::engine
