#include "core/planning/context_choice.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/refusal.h"
#include "core/base/status_macros.h"
#include "core/ring/primes.h"

namespace cipherd::planning {
namespace {

using base::Refuse;

constexpr int kMinLogN = 12;
constexpr int kMaxLogN = 17;
constexpr int kMaxPrimeBits = 60;
constexpr int kMaxPrimes = 64;

absl::Status CheckNeeds(const ContextNeeds& needs) {
  if (needs.depth < 0 || needs.depth >= kMaxPrimes - 1) {
    return Refuse("depth: expected 0 to ", kMaxPrimes - 2, ", got ", needs.depth);
  }
  if (needs.min_log_n < kMinLogN || needs.max_log_n > kMaxLogN ||
      needs.min_log_n > needs.max_log_n) {
    return Refuse("log_n: expected a range in ", kMinLogN, " to ", kMaxLogN, ", got ",
                  needs.min_log_n, " to ", needs.max_log_n);
  }
  if (needs.log2_scale < 2 || needs.base_prime_bits <= needs.log2_scale ||
      needs.base_prime_bits > kMaxPrimeBits) {
    return Refuse("base_prime_bits: expected above log2_scale, ", needs.log2_scale,
                  ", and at most ", kMaxPrimeBits, ", got ", needs.base_prime_bits);
  }
  return absl::OkStatus();
}

// Takes primes for a context of 2^log_n, each once.
class PrimeTaker {
 public:
  explicit PrimeTaker(int log_n) : log_n_(log_n), step_(uint64_t{2} << log_n) {}

  // The greatest below 2^bits.
  absl::StatusOr<uint64_t> Below(int bits) {
    for (uint64_t q = (uint64_t{1} << bits) - step_ + 1; q > step_ && q < uint64_t{1} << bits;
         q -= step_) {
      if (Take(q)) return q;
    }
    return None(std::exp2(bits));
  }

  // The nearest to `target`, within a factor of two.
  absl::StatusOr<uint64_t> Nearest(double target) {
    const uint64_t middle = static_cast<uint64_t>(target) / step_ * step_ + 1;
    for (uint64_t distance = 0; distance < middle / 2; distance += step_) {
      const uint64_t above = middle + distance + step_;
      const uint64_t below = middle - distance;
      const bool above_first = above - target < target - below;
      for (const uint64_t q : {above_first ? above : below, above_first ? below : above}) {
        if (q > step_ && Take(q)) return q;
      }
    }
    return None(target);
  }

 private:
  bool Take(uint64_t q) {
    if (std::find(taken_.begin(), taken_.end(), q) != taken_.end() || !ring::IsPrime(q)) {
      return false;
    }
    taken_.push_back(q);
    return true;
  }
  absl::Status None(double size) const {
    return absl::ResourceExhaustedError(absl::StrCat("primes: expected another one of 1 mod 2^",
                                                     log_n_ + 1, " near 2^", std::log2(size),
                                                     ", got none; ask for more precision"));
  }

  const int log_n_;
  const uint64_t step_;
  std::vector<uint64_t> taken_;
};

// The context of degree 2^log_n with `digit_size` primes in a digit, secure or not.
absl::StatusOr<ckks::ContextParameters> MakeContext(const ContextNeeds& needs, int log_n,
                                                    int digit_size) {
  ckks::ContextParameters context;
  context.log_n = log_n;
  context.default_scale = std::exp2(needs.log2_scale);
  // P is to be at least twice the product of the digit that has the base prime.
  const int digit_bits = needs.base_prime_bits + (digit_size - 1) * needs.log2_scale;
  const int p_bits = std::min((digit_bits + digit_size - 1) / digit_size + 1, kMaxPrimeBits);
  PrimeTaker taker(log_n);
  for (int i = 0; i < digit_size; ++i) {
    CIPHERD_ASSIGN_OR_RETURN(context.p_primes.emplace_back(), taker.Below(p_bits));
  }
  CIPHERD_ASSIGN_OR_RETURN(const uint64_t base, taker.Below(needs.base_prime_bits));
  double scale = context.default_scale;
  for (int depth = 0; depth < needs.depth; ++depth) {
    CIPHERD_ASSIGN_OR_RETURN(context.q_primes.emplace_back(), taker.Nearest(scale));
    scale = scale * scale / static_cast<double>(context.q_primes.back());
  }
  context.q_primes.push_back(base);
  context.rescale_groups.assign(needs.depth, 1);
  // Sizes differ by at most one, the smaller digits last, where the base prime is.
  const int q_count = context.q_count();
  const int digit_count = (q_count + digit_size - 1) / digit_size;
  int32_t id = 0;
  for (int d = 0; d < digit_count; ++d) {
    std::vector<int32_t>& digit = context.digits.emplace_back();
    const int size = q_count / digit_count + (d < q_count % digit_count ? 1 : 0);
    for (int i = 0; i < size; ++i) digit.push_back(id++);
  }
  return context;
}

// Limbs that a key switch at depth 0 transforms, nearly its time.
int64_t KeySwitchCost(const ckks::ContextParameters& context) {
  const int64_t limbs = context.q_count() + context.p_count();
  return static_cast<int64_t>(context.digits.size()) * limbs + 2 * limbs;
}

}  // namespace

double Log2DigitOverP(const ckks::ContextParameters& context) {
  double largest = 0;
  for (const std::vector<int32_t>& digit : context.digits) {
    double log2_product = 0;
    for (const int32_t id : digit) {
      log2_product += std::log2(static_cast<double>(context.q_primes[id]));
    }
    largest = std::max(largest, log2_product);
  }
  double log2_p = 0;
  for (const uint64_t p : context.p_primes) log2_p += std::log2(static_cast<double>(p));
  return largest - log2_p;
}

absl::StatusOr<ckks::ContextParameters> ChooseContext(const ContextNeeds& needs) {
  CIPHERD_RETURN_IF_ERROR(CheckNeeds(needs));
  for (int log_n = needs.min_log_n; log_n <= needs.max_log_n; ++log_n) {
    if (int64_t{1} << (log_n - 1) < needs.slot_count) continue;
    std::optional<ckks::ContextParameters> best;
    for (int digit_size = 1; digit_size <= needs.depth + 1; ++digit_size) {
      if (needs.depth + 1 + digit_size > kMaxPrimes) break;
      CIPHERD_ASSIGN_OR_RETURN(ckks::ContextParameters context,
                               MakeContext(needs, log_n, digit_size));
      if (!context.Validate(ckks::SecurityPolicy::k128BitClassical).ok()) continue;
      if (!best || KeySwitchCost(context) < KeySwitchCost(*best)) best = std::move(context);
    }
    if (best) return *std::move(best);
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "context: expected a degree of at most 2^", needs.max_log_n, " for ", needs.slot_count,
      " slots and ", needs.depth, " depths of ", needs.log2_scale,
      " bits, got none that is secure; ask for less precision, or make the circuit shallower"));
}

}  // namespace cipherd::planning
