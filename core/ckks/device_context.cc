#include "core/ckks/device_context.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "core/base/status_macros.h"
#include "core/math/barrett.h"
#include "core/math/power.h"
#include "core/math/shoup.h"
#include "core/ring/basis_conversion.h"
#include "core/ring/rns_basis.h"

namespace cipherd::ckks {
namespace {

using kernels::LimbPrimes;

LimbPrimes ToLimbPrimes(const std::vector<int64_t>& prime_ids) {
  LimbPrimes limbs;
  for (int64_t id : prime_ids) limbs.prime[limbs.count++] = static_cast<uint16_t>(id);
  return limbs;
}

std::span<const uint16_t> Rows(const LimbPrimes& limbs) {
  return std::span(limbs.prime).first(limbs.count);
}

// `count` limbs of `limbs` from `first` on.
LimbPrimes Slice(const LimbPrimes& limbs, int first, int count) {
  LimbPrimes slice;
  for (int l = first; l < first + count; ++l) slice.prime[slice.count++] = limbs.prime[l];
  return slice;
}

// The limbs of `limbs` that `selected` admits, in maximal runs of neighbours.
template <typename Predicate>
std::vector<LimbRun> Runs(const LimbPrimes& limbs, Predicate selected) {
  std::vector<LimbRun> runs;
  for (int l = 0; l < limbs.count; ++l) {
    if (!selected(limbs.prime[l])) continue;
    if (runs.empty() || runs.back().first + runs.back().primes.count != l) {
      runs.push_back({.first = l, .primes = {}});
    }
    LimbPrimes& primes = runs.back().primes;
    primes.prime[primes.count++] = limbs.prime[l];
  }
  return runs;
}

// Conversions whose tables are wanted at an address that is known only once all of them are
// counted.
class PendingConversions {
 public:
  explicit PendingConversions(const ring::RnsBasis& basis)
      : basis_(basis), bytes_(basis.image().bytes()) {}

  // `tables` must stay where it is until Place.
  absl::Status Add(const LimbPrimes& source, const LimbPrimes& target,
                   ring::BasisConversionTables& tables) {
    CIPHERD_ASSIGN_OR_RETURN(ring::BasisConversion conversion,
                             ring::BasisConversion::Create(basis_, Rows(source), Rows(target)));
    const size_t offset = bytes_;
    bytes_ += conversion.image().bytes();
    entries_.push_back({std::move(conversion), offset, &tables});
    return absl::OkStatus();
  }

  // Of the ring's tables and all conversions.
  size_t bytes() const { return bytes_; }

  // Writes to `staging` what must lie at `base`, and points every tables struct there.
  void Place(std::byte* base, std::byte* staging) {
    basis_.image().WriteAt(base, staging);
    for (const Entry& entry : entries_) {
      entry.conversion.image().WriteAt(base + entry.offset, staging + entry.offset);
      *entry.tables = entry.conversion.TablesAt(base + entry.offset);
    }
  }

 private:
  struct Entry {
    ring::BasisConversion conversion;
    size_t offset;
    ring::BasisConversionTables* tables;
  };
  const ring::RnsBasis& basis_;
  size_t bytes_;
  std::vector<Entry> entries_;
};

void SetScalar(uint64_t value, const math::Barrett& modulus, int l, kernels::LimbScalars& scalars) {
  scalars.value[l] = value;
  scalars.shoup[l] = math::ShoupQuotient(value, modulus);
}

// The drop of the first `head_count` and the last `tail_count` limbs of `limbs`.
absl::Status FillDrop(const ring::RnsBasis& basis, const LimbPrimes& limbs, int head_count,
                      int tail_count, PendingConversions& pending, LimbDrop& drop) {
  const LimbPrimes head = Slice(limbs, 0, head_count);
  const LimbPrimes tail = Slice(limbs, limbs.count - tail_count, tail_count);
  drop.head_count = head_count;
  drop.dropped = head;
  for (int l = 0; l < tail_count; ++l) drop.dropped.prime[drop.dropped.count++] = tail.prime[l];
  drop.remaining = Slice(limbs, head_count, limbs.count - head_count - tail_count);
  for (int l = 0; l < head_count; ++l) {
    const int row = head.prime[l];
    SetScalar(basis.ProductMod(Rows(tail), row), basis.modulus(row), l, drop.head_tail);
  }
  for (int l = 0; l < drop.remaining.count; ++l) {
    const int row = drop.remaining.prime[l];
    const math::Barrett& modulus = basis.modulus(row);
    const uint64_t inverse = math::InverseMod(basis.ProductMod(Rows(drop.dropped), row), modulus);
    SetScalar(inverse, modulus, l, drop.inverse);
    SetScalar(math::MulMod(basis.ProductMod(Rows(tail), row), inverse, modulus), modulus, l,
              drop.remaining_tail);
  }
  return pending.Add(drop.dropped, drop.remaining, drop.conversion);
}

// The plan of fused steps, which has one conversion a digit.
absl::Status FillLiftPlan(const LimbPrimes& q, const LimbPrimes& qp, PendingConversions& pending,
                          ModUpPlan& plan) {
  if (plan.digits.size() > kernels::kMaxFusedDigits) return absl::OkStatus();
  kernels::LiftPlan& fused = plan.fused;
  for (const DigitLift& digit : plan.digits) {
    if (digit.source_count > kernels::kMaxFusedSources) return absl::OkStatus();
    for (const LimbRun& run : digit.own) {
      for (int l = 0; l < run.primes.count; ++l) {
        fused.source_limb[fused.packed.count] = static_cast<uint8_t>(run.first + l);
        fused.packed.prime[fused.packed.count++] = q.prime[run.first + l];
      }
    }
  }
  fused.target = qp;
  fused.lift_count = static_cast<int>(plan.digits.size());
  for (int d = 0; d < fused.lift_count; ++d) {
    kernels::LimbLift& lift = fused.lifts[d];
    lift.first_packed = plan.digits[d].first_packed;
    LimbPrimes source = Slice(fused.packed, lift.first_packed, plan.digits[d].source_count);
    for (int p = 0; p < source.count; ++p) {
      lift.own_limbs |= uint64_t{1} << fused.source_limb[lift.first_packed + p];
    }
    LimbPrimes target;
    for (int l = 0; l < qp.count; ++l) {
      if ((lift.own_limbs >> l & 1) == 0) target.prime[target.count++] = qp.prime[l];
    }
    CIPHERD_RETURN_IF_ERROR(pending.Add(source, target, lift.conversion));
  }
  return absl::OkStatus();
}

absl::Status FillModUp(const ContextParameters& parameters, const LimbPrimes& q,
                       const LimbPrimes& qp, PendingConversions& pending, ModUpPlan& plan) {
  int packed_count = 0;
  for (size_t d = 0; d < parameters.digits.size(); ++d) {
    const std::vector<int32_t>& ids = parameters.digits[d];
    const auto is_own = [&ids](int id) {
      return std::find(ids.begin(), ids.end(), id) != ids.end();
    };
    DigitLift lift;
    lift.key_digit = static_cast<int>(d);
    lift.first_packed = packed_count;
    lift.own = Runs(q, is_own);
    if (lift.own.empty()) continue;
    LimbPrimes source;
    for (const LimbRun& run : lift.own) {
      for (int l = 0; l < run.primes.count; ++l) {
        source.prime[source.count++] = run.primes.prime[l];
      }
      // Joins the gather before it where both sides go on.
      if (!plan.gathers.empty()) {
        ModUpPlan::Gather& last = plan.gathers.back();
        if (last.run.first + last.run.primes.count == run.first) {
          for (int l = 0; l < run.primes.count; ++l) {
            last.run.primes.prime[last.run.primes.count++] = run.primes.prime[l];
          }
          packed_count += run.primes.count;
          continue;
        }
      }
      plan.gathers.push_back({.run = run, .first_packed = packed_count});
      packed_count += run.primes.count;
    }
    lift.source_count = source.count;
    const auto is_target = [&is_own](int id) { return !is_own(id); };
    for (const LimbRun& run : Runs(qp, is_target)) {
      lift.targets.push_back({.run = run, .conversion = {}});
    }
    plan.digits.push_back(std::move(lift));
    // The vector of targets keeps its buffer when the lift moves.
    for (DigitLift::Target& target : plan.digits.back().targets) {
      CIPHERD_RETURN_IF_ERROR(pending.Add(source, target.run.primes, target.conversion));
    }
  }
  return absl::OkStatus();
}

}  // namespace

DeviceContext::DeviceContext(std::shared_ptr<const Context> context, runtime::Device& device,
                             kernels::Arithmetic arithmetic, bool fused)
    : context_(std::move(context)),
      device_(device),
      kernels_(kernels::KernelsFor(device, arithmetic)) {
  const int log_n = parameters().log_n;
  if (fused && kernels_.fused != nullptr && log_n >= kernels_.fused->min_log_n &&
      log_n <= kernels_.fused->max_log_n) {
    fused_ = kernels_.fused;
  }
}

absl::StatusOr<std::unique_ptr<DeviceContext>> DeviceContext::Create(
    std::shared_ptr<const Context> context, runtime::Device& device, runtime::Stream& stream,
    const KernelChoice& choice) {
  const kernels::Arithmetic arithmetic =
      choice.arithmetic.value_or(kernels::FastestArithmetic(device, context->ring()));
  if (arithmetic == kernels::Arithmetic::kFma && !context->ring().all_fma) {
    return absl::InvalidArgumentError(
        "arithmetic: expected integer for a context with primes of 2^50 and above, got fma");
  }
  std::unique_ptr<DeviceContext> result(
      new DeviceContext(std::move(context), device, arithmetic, choice.fused));
  const ContextParameters& parameters = result->parameters();
  const ring::RnsBasis& basis = result->context_->basis();

  PendingConversions pending(basis);
  result->depths_.resize(parameters.max_depth() + 1);
  for (int depth = 0; depth <= parameters.max_depth(); ++depth) {
    Depth& tables = result->depths_[depth];
    tables.q = ToLimbPrimes(parameters.ActivePrimeIds(depth, false));
    tables.qp = ToLimbPrimes(parameters.ActivePrimeIds(depth, true));
    const int p_count = parameters.p_count();
    const LimbPrimes p = Slice(tables.qp, tables.q.count, p_count);
    for (int l = 0; l < tables.q.count; ++l) {
      tables.p_residues[l] = basis.ProductMod(Rows(p), tables.q.prime[l]);
    }
    CIPHERD_RETURN_IF_ERROR(FillDrop(basis, tables.qp, 0, p_count, pending, tables.mod_down));
    if (depth < parameters.max_depth()) {
      const int group = parameters.rescale_groups[depth];
      CIPHERD_RETURN_IF_ERROR(FillDrop(basis, tables.q, group, 0, pending, tables.rescale));
      CIPHERD_RETURN_IF_ERROR(
          FillDrop(basis, tables.qp, group, p_count, pending, tables.mod_down_rescale));
    }
    CIPHERD_RETURN_IF_ERROR(FillModUp(parameters, tables.q, tables.qp, pending, tables.mod_up));
    CIPHERD_RETURN_IF_ERROR(FillLiftPlan(tables.q, tables.qp, pending, tables.mod_up));
  }

  CIPHERD_ASSIGN_OR_RETURN(result->tables_, device.Allocate(pending.bytes(), stream));
  std::byte* const base = static_cast<std::byte*>(result->tables_->data());
  std::vector<std::byte> staging(pending.bytes());
  pending.Place(base, staging.data());
  result->ring_ = basis.TablesAt(base);
  absl::Status copied = stream.CopyAsync(base, staging.data(), staging.size());
  // The staging block must outlive the copy, also where a later call fails.
  absl::Status finished = stream.Synchronize();
  CIPHERD_RETURN_IF_ERROR(copied);
  CIPHERD_RETURN_IF_ERROR(finished);
  return result;
}

}  // namespace cipherd::ckks
