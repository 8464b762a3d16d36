#include "core/ring/primes.h"

#include <algorithm>
#include <array>
#include <set>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/math/barrett.h"
#include "core/math/modular.h"
#include "core/math/mulhi.h"
#include "core/math/power.h"

namespace cipherd::ring {
namespace {

using math::kMaxModulusBits;
using math::uint128_t;

// Moduli up to 64 bits, beyond the range of math::Barrett; speed does not matter here.
uint64_t MulModAny(uint64_t a, uint64_t b, uint64_t n) {
  return static_cast<uint64_t>(static_cast<uint128_t>(a) * b % n);
}

uint64_t PowModAny(uint64_t base, uint64_t exponent, uint64_t n) {
  uint64_t result = 1;
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1) result = MulModAny(result, base, n);
    base = MulModAny(base, base, n);
  }
  return result;
}

// Candidates 1 mod 2N in the order of a placement. Returns 0 at the end.
class Candidates {
 public:
  Candidates(int log_n, int bits, PrimePlacement placement)
      : step_(uint64_t{2} << log_n),
        center_((uint64_t{1} << bits) + 1),
        floor_(uint64_t{1} << (bits - 1)),
        around_(placement == PrimePlacement::kAround && bits < kMaxModulusBits) {}

  uint64_t Next() {
    if (around_ && above_next_) {
      above_next_ = false;
      return center_ + distance_ * step_;
    }
    // 2^bits + 1 itself is nearest from above.
    ++distance_;
    const uint64_t candidate = center_ - distance_ * step_;
    if (candidate < floor_ || candidate > center_) return 0;
    above_next_ = true;
    return candidate;
  }

 private:
  const uint64_t step_;
  const uint64_t center_;
  const uint64_t floor_;
  const bool around_;
  bool above_next_ = true;
  uint64_t distance_ = 0;
};

}  // namespace

absl::Status ValidateLogN(int log_n) {
  if (log_n >= kMinLogN && log_n <= kMaxLogN) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("log_n: expected ", kMinLogN, " to ", kMaxLogN, ", got ", log_n));
}

bool IsPrime(uint64_t n) {
  // Miller-Rabin; these bases leave no composite below 2^64 undetected (Sorenson and Webster,
  // "Strong pseudoprimes to twelve prime bases", 2015).
  static constexpr std::array<uint64_t, 12> kBases = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37};
  if (n < 2) return false;
  for (uint64_t base : kBases) {
    if (n % base == 0) return n == base;
  }
  uint64_t odd_part = n - 1;
  int twos = 0;
  for (; odd_part % 2 == 0; odd_part /= 2) ++twos;
  return std::all_of(kBases.begin(), kBases.end(), [&](uint64_t base) {
    uint64_t x = PowModAny(base, odd_part, n);
    if (x == 1 || x == n - 1) return true;
    for (int i = 1; i < twos; ++i) {
      x = MulModAny(x, x, n);
      if (x == n - 1) return true;
    }
    return false;
  });
}

absl::StatusOr<std::vector<uint64_t>> GeneratePrimes(int log_n, std::span<const int> bits,
                                                     PrimePlacement placement) {
  CIPHERD_RETURN_IF_ERROR(ValidateLogN(log_n));
  std::vector<uint64_t> primes;
  std::set<uint64_t> taken;
  for (size_t i = 0; i < bits.size(); ++i) {
    if (bits[i] < log_n + 2 || bits[i] > kMaxModulusBits) {
      return absl::InvalidArgumentError(absl::StrCat("bits[", i, "]: expected ", log_n + 2, " to ",
                                                     kMaxModulusBits, ", got ", bits[i]));
    }
    Candidates candidates(log_n, bits[i], placement);
    uint64_t q = candidates.Next();
    while (q != 0 && (taken.contains(q) || !IsPrime(q))) q = candidates.Next();
    if (q == 0) {
      return absl::InvalidArgumentError(absl::StrCat(
          "bits[", i, "]: no prime of ", bits[i], " bits that is 1 mod 2^", log_n + 1, " is left"));
    }
    taken.insert(q);
    primes.push_back(q);
  }
  return primes;
}

absl::Status ValidatePrime(uint64_t q, int log_n) {
  CIPHERD_RETURN_IF_ERROR(ValidateLogN(log_n));
  if (q >> kMaxModulusBits != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a prime below 2^", kMaxModulusBits, ", got ", q));
  }
  if (q % (uint64_t{2} << log_n) != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected a prime that is 1 mod 2^", log_n + 1, ", got ", q));
  }
  if (!IsPrime(q)) {
    return absl::InvalidArgumentError(absl::StrCat("expected a prime, got ", q));
  }
  return absl::OkStatus();
}

uint64_t SmallestPrimitiveRoot(uint64_t q, int log_n) {
  const math::Barrett m = math::MakeBarrett(q);
  const uint64_t n = uint64_t{1} << log_n;
  // The 2N-th root that a quadratic non-residue gives is primitive: its N-th power is
  // x^((q-1)/2) = -1. All others are its odd powers.
  uint64_t non_residue = 2;
  while (math::PowMod(non_residue, (q - 1) / 2, m) != q - 1) ++non_residue;
  uint64_t root = math::PowMod(non_residue, (q - 1) / (2 * n), m);
  const uint64_t square = math::MulMod(root, root, m);
  uint64_t smallest = root;
  for (uint64_t i = 1; i < n; ++i) {
    root = math::MulMod(root, square, m);
    smallest = std::min(smallest, root);
  }
  return smallest;
}

}  // namespace cipherd::ring
