#include "core/ring/basis_conversion.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/math/power.h"
#include "core/math/shoup.h"

namespace cipherd::ring {
namespace {

absl::Status ValidateRows(const char* side, std::span<const uint16_t> rows, int prime_count) {
  if (rows.empty() || rows.size() > BasisConversion::kMaxPrimesPerSide) {
    return absl::InvalidArgumentError(absl::StrCat(side, ": expected 1 to ",
                                                   BasisConversion::kMaxPrimesPerSide,
                                                   " primes, got ", rows.size()));
  }
  std::set<uint16_t> seen;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] >= prime_count) {
      return absl::InvalidArgumentError(
          absl::StrCat(side, "[", i, "]: expected a row below ", prime_count, ", got ", rows[i]));
    }
    if (!seen.insert(rows[i]).second) {
      return absl::InvalidArgumentError(
          absl::StrCat(side, "[", i, "]: row ", rows[i], " comes twice"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

struct BasisConversion::Offsets {
  Offsets(size_t source_count, size_t target_count)
      : source_primes(layout.Add<uint16_t>(source_count)),
        target_primes(layout.Add<uint16_t>(target_count)),
        hat_inverse(layout.Add<uint64_t>(source_count)),
        hat_inverse_shoup(layout.Add<uint64_t>(source_count)),
        hat(layout.Add<uint64_t>(source_count * target_count)),
        source_product(layout.Add<uint64_t>(target_count)),
        source_inverse(layout.Add<double>(source_count)) {}

  RelocatableImage::Layout layout;
  size_t source_primes;
  size_t target_primes;
  size_t hat_inverse;
  size_t hat_inverse_shoup;
  size_t hat;
  size_t source_product;
  size_t source_inverse;
};

absl::StatusOr<BasisConversion> BasisConversion::Create(const RnsBasis& basis,
                                                        std::span<const uint16_t> source,
                                                        std::span<const uint16_t> target) {
  CIPHERD_RETURN_IF_ERROR(ValidateRows("source", source, basis.prime_count()));
  CIPHERD_RETURN_IF_ERROR(ValidateRows("target", target, basis.prime_count()));
  return BasisConversion(basis, source, target);
}

BasisConversion::BasisConversion(const RnsBasis& basis, std::span<const uint16_t> source,
                                 std::span<const uint16_t> target)
    : source_count_(static_cast<int>(source.size())),
      target_count_(static_cast<int>(target.size())),
      image_(Offsets(source.size(), target.size()).layout) {
  const Offsets offsets(source.size(), target.size());
  std::copy(source.begin(), source.end(), image_.At<uint16_t>(offsets.source_primes));
  std::copy(target.begin(), target.end(), image_.At<uint16_t>(offsets.target_primes));

  // others[i] = source without its entry i, whose product is Q / q_i.
  std::vector<std::vector<uint16_t>> others(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    for (size_t k = 0; k < source.size(); ++k) {
      if (k != i) others[i].push_back(source[k]);
    }
  }
  for (size_t i = 0; i < source.size(); ++i) {
    const math::Barrett& m = basis.modulus(source[i]);
    const uint64_t hat_inverse = math::InverseMod(basis.ProductMod(others[i], source[i]), m);
    image_.At<uint64_t>(offsets.hat_inverse)[i] = hat_inverse;
    image_.At<uint64_t>(offsets.hat_inverse_shoup)[i] = math::ShoupQuotient(hat_inverse, m);
    image_.At<double>(offsets.source_inverse)[i] = 1.0 / static_cast<double>(m.q);
  }
  for (size_t j = 0; j < target.size(); ++j) {
    for (size_t i = 0; i < source.size(); ++i) {
      image_.At<uint64_t>(offsets.hat)[j * source.size() + i] =
          basis.ProductMod(others[i], target[j]);
    }
    image_.At<uint64_t>(offsets.source_product)[j] = basis.ProductMod(source, target[j]);
  }
}

BasisConversionTables BasisConversion::TablesAt(const void* base) const {
  const Offsets offsets(source_count_, target_count_);
  BasisConversionTables tables;
  tables.source_count = source_count_;
  tables.target_count = target_count_;
  tables.source_primes = RelocatableImage::AddressAt<uint16_t>(base, offsets.source_primes);
  tables.target_primes = RelocatableImage::AddressAt<uint16_t>(base, offsets.target_primes);
  tables.hat_inverse = RelocatableImage::AddressAt<uint64_t>(base, offsets.hat_inverse);
  tables.hat_inverse_shoup = RelocatableImage::AddressAt<uint64_t>(base, offsets.hat_inverse_shoup);
  tables.hat = RelocatableImage::AddressAt<uint64_t>(base, offsets.hat);
  tables.source_product = RelocatableImage::AddressAt<uint64_t>(base, offsets.source_product);
  tables.source_inverse = RelocatableImage::AddressAt<double>(base, offsets.source_inverse);
  return tables;
}

}  // namespace cipherd::ring
