#include "core/ckks/device_context.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "core/base/status_macros.h"
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

absl::Status FillDrop(const ring::RnsBasis& basis, PendingConversions& pending, LimbDrop& drop) {
  for (int l = 0; l < drop.remaining.count; ++l) {
    const int row = drop.remaining.prime[l];
    const math::Barrett& modulus = basis.modulus(row);
    const uint64_t inverse = math::InverseMod(basis.ProductMod(Rows(drop.dropped), row), modulus);
    drop.inverse.value[l] = inverse;
    drop.inverse.shoup[l] = math::ShoupQuotient(inverse, modulus);
  }
  return pending.Add(drop.dropped, drop.remaining, drop.conversion);
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

DeviceContext::DeviceContext(std::shared_ptr<const Context> context, runtime::Device& device)
    : context_(std::move(context)), device_(device), kernels_(kernels::KernelsFor(device)) {}

absl::StatusOr<std::unique_ptr<DeviceContext>> DeviceContext::Create(
    std::shared_ptr<const Context> context, runtime::Device& device, runtime::Stream& stream) {
  std::unique_ptr<DeviceContext> result(new DeviceContext(std::move(context), device));
  const ContextParameters& parameters = result->parameters();
  const ring::RnsBasis& basis = result->context_->basis();

  PendingConversions pending(basis);
  result->depths_.resize(parameters.max_depth() + 1);
  for (int depth = 0; depth <= parameters.max_depth(); ++depth) {
    Depth& tables = result->depths_[depth];
    const int q_count = parameters.active_q_count(depth);
    tables.q = ToLimbPrimes(parameters.ActivePrimeIds(depth, false));
    tables.qp = ToLimbPrimes(parameters.ActivePrimeIds(depth, true));
    tables.mod_down.first_dropped = q_count;
    tables.mod_down.dropped = Slice(tables.qp, q_count, parameters.p_count());
    tables.mod_down.remaining = tables.q;
    CIPHERD_RETURN_IF_ERROR(FillDrop(basis, pending, tables.mod_down));
    if (depth < parameters.max_depth()) {
      const int group = parameters.rescale_groups[depth];
      tables.rescale.first_remaining = group;
      tables.rescale.dropped = Slice(tables.q, 0, group);
      tables.rescale.remaining = Slice(tables.q, group, q_count - group);
      CIPHERD_RETURN_IF_ERROR(FillDrop(basis, pending, tables.rescale));
    }
    CIPHERD_RETURN_IF_ERROR(FillModUp(parameters, tables.q, tables.qp, pending, tables.mod_up));
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
