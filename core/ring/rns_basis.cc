#include "core/ring/rns_basis.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/math/bit_reverse.h"
#include "core/math/power.h"
#include "core/math/shoup.h"
#include "core/ring/primes.h"

namespace cipherd::ring {
namespace {

// The rows come first.
constexpr size_t kRowsOffset = 0;

struct BasisLayout {
  BasisLayout(int log_n, size_t prime_count) {
    layout.Add<PrimeConstants>(prime_count);
    powers_offset = layout.Add<uint64_t>((prime_count * kArrays) << log_n);
  }
  // Of N words each, a row: powers and inverse powers, of each the words, their Shoup quotients and
  // the centred doubles.
  static constexpr size_t kArrays = 6;
  RelocatableImage::Layout layout;
  size_t powers_offset;
};

// powers[i] = base^bitrev(i), shoup[i] its quotient.
void FillPowers(uint64_t base, int log_n, const math::Barrett& m, uint64_t* powers,
                uint64_t* shoup) {
  uint64_t power = 1;
  for (uint32_t exponent = 0; exponent < uint32_t{1} << log_n; ++exponent) {
    const uint32_t index = math::BitReverse(exponent, log_n);
    powers[index] = power;
    shoup[index] = math::ShoupQuotient(power, m);
    power = math::MulMod(power, base, m);
  }
}

// centred[i] = powers[i] in [-q/2, q/2]. Requires q < 2^53.
void FillCentred(const uint64_t* powers, int log_n, uint64_t q, double* centred) {
  for (size_t i = 0; i < size_t{1} << log_n; ++i) {
    const double power = static_cast<double>(powers[i]);
    centred[i] = powers[i] > q / 2 ? power - static_cast<double>(q) : power;
  }
}

}  // namespace

absl::StatusOr<RnsBasis> RnsBasis::Create(int log_n, std::span<const uint64_t> primes) {
  CIPHERD_RETURN_IF_ERROR(ValidateLogN(log_n));
  if (primes.empty() || primes.size() > kMaxPrimes) {
    return absl::InvalidArgumentError(
        absl::StrCat("primes: expected 1 to ", kMaxPrimes, " of them, got ", primes.size()));
  }
  std::set<uint64_t> seen;
  for (size_t i = 0; i < primes.size(); ++i) {
    const absl::Status status = ValidatePrime(primes[i], log_n);
    if (!status.ok()) {
      return absl::InvalidArgumentError(absl::StrCat("primes[", i, "]: ", status.message()));
    }
    if (!seen.insert(primes[i]).second) {
      return absl::InvalidArgumentError(
          absl::StrCat("primes[", i, "]: ", primes[i], " comes twice"));
    }
  }
  return RnsBasis(log_n, primes);
}

RnsBasis::RnsBasis(int log_n, std::span<const uint64_t> primes)
    : log_n_(log_n),
      primes_(primes.begin(), primes.end()),
      image_(BasisLayout(log_n, primes.size()).layout) {
  const BasisLayout layout(log_n, primes.size());
  for (int row = 0; row < prime_count(); ++row) {
    moduli_.push_back(math::MakeBarrett(primes_[row]));
    psi_.push_back(SmallestPrimitiveRoot(primes_[row], log_n));
    FillRow(row, layout.powers_offset + row * BasisLayout::kArrays * n() * sizeof(uint64_t));
  }
}

void RnsBasis::FillRow(int row, size_t powers_offset) {
  const math::Barrett& m = moduli_[row];
  const size_t row_offset = kRowsOffset + row * sizeof(PrimeConstants);
  const size_t array_bytes = n() * sizeof(uint64_t);
  const auto place = [&](size_t member_offset, size_t array) {
    const size_t offset = powers_offset + array * array_bytes;
    image_.SetPointer(row_offset + member_offset, offset);
    return image_.At<uint64_t>(offset);
  };
  PrimeConstants& constants = *image_.At<PrimeConstants>(row_offset);
  uint64_t* powers = place(offsetof(PrimeConstants, psi_powers), 0);
  uint64_t* powers_shoup = place(offsetof(PrimeConstants, psi_powers_shoup), 1);
  uint64_t* inverse_powers = place(offsetof(PrimeConstants, psi_inverse_powers), 2);
  uint64_t* inverse_powers_shoup = place(offsetof(PrimeConstants, psi_inverse_powers_shoup), 3);
  FillPowers(psi_[row], log_n_, m, powers, powers_shoup);
  FillPowers(math::InverseMod(psi_[row], m), log_n_, m, inverse_powers, inverse_powers_shoup);

  if (m.q >> kFmaPrimeBits == 0) {
    place(offsetof(PrimeConstants, psi_powers_centred), 4);
    place(offsetof(PrimeConstants, psi_inverse_powers_centred), 5);
    FillCentred(powers, log_n_, m.q, image_.At<double>(powers_offset + 4 * array_bytes));
    FillCentred(inverse_powers, log_n_, m.q, image_.At<double>(powers_offset + 5 * array_bytes));
    constants.q_double = static_cast<double>(m.q);
    constants.q_inverse = 1.0 / constants.q_double;
  }
  constants.q = m.q;
  constants.barrett_high = m.reciprocal_high;
  constants.barrett_low = m.reciprocal_low;
  constants.n_inverse = math::InverseMod(static_cast<uint64_t>(n()) % m.q, m);
  constants.n_inverse_shoup = math::ShoupQuotient(constants.n_inverse, m);
  constants.n_inverse_root = math::MulMod(constants.n_inverse, inverse_powers[1], m);
  constants.n_inverse_root_shoup = math::ShoupQuotient(constants.n_inverse_root, m);
}

uint64_t RnsBasis::ProductMod(std::span<const uint16_t> rows, int row) const {
  const math::Barrett& m = moduli_[row];
  uint64_t product = 1;
  for (uint16_t factor : rows) {
    product = math::MulMod(product, math::Reduce64(primes_[factor], m), m);
  }
  return product;
}

RingTables RnsBasis::TablesAt(const void* base) const {
  const bool all_fma = std::all_of(primes_.begin(), primes_.end(),
                                   [](uint64_t q) { return q >> kFmaPrimeBits == 0; });
  return {log_n_, prime_count(), RelocatableImage::AddressAt<PrimeConstants>(base, kRowsOffset),
          all_fma};
}

}  // namespace cipherd::ring
