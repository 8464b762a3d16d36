// The primes of a context with everything that number theoretic transforms need: owner of the
// tables that ring_tables.h describes.
//
//   CIPHERD_ASSIGN_OR_RETURN(RnsBasis basis, RnsBasis::Create(/*log_n=*/14, primes));
//   basis.tables();                                    // for host code that is not on a device
//   basis.image().WriteAt(block->data(), staging);     // then copy image().bytes() to the device,
//   and basis.TablesAt(block->data());                     // these are the tables for its kernels
//
// Row i of the tables is prime i. A basis owns its host tables (48 N bytes a prime) and must
// outlive work that reads tables(); images that were placed elsewhere do not depend on it.
// Move-only, immutable, thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "core/math/barrett.h"
#include "core/ring/relocatable_image.h"
#include "core/ring/ring_tables.h"

namespace cipherd::ring {

class RnsBasis {
 public:
  // Primes of one basis: a row is 16 bits wide in every table.
  static constexpr size_t kMaxPrimes = 1 << 16;

  // InvalidArgument, naming `log_n` or `primes[i]`, where log_n is outside [4, 17], there is no
  // prime or more than kMaxPrimes, or one is not a prime below 2^61, is not 1 mod 2N, or comes
  // twice.
  static absl::StatusOr<RnsBasis> Create(int log_n, std::span<const uint64_t> primes);

  int log_n() const { return log_n_; }
  int64_t n() const { return int64_t{1} << log_n_; }
  int prime_count() const { return static_cast<int>(primes_.size()); }
  const std::vector<uint64_t>& primes() const { return primes_; }
  uint64_t prime(int row) const { return primes_[row]; }
  const math::Barrett& modulus(int row) const { return moduli_[row]; }
  // The smallest primitive 2N-th root of unity modulo prime `row`.
  uint64_t psi(int row) const { return psi_[row]; }

  // Product of the primes `rows` modulo prime `row`; 1 mod q for none.
  uint64_t ProductMod(std::span<const uint16_t> rows, int row) const;

  const RelocatableImage& image() const { return image_; }
  // Tables in host memory.
  RingTables tables() const { return TablesAt(image_.data()); }
  // Tables of the image that was placed at `base`.
  RingTables TablesAt(const void* base) const;

 private:
  RnsBasis(int log_n, std::span<const uint64_t> primes);

  // Fills one row and its four arrays, which lie in a row at `powers_offset`.
  void FillRow(int row, size_t powers_offset);

  int log_n_;
  std::vector<uint64_t> primes_;
  std::vector<math::Barrett> moduli_;
  std::vector<uint64_t> psi_;
  RelocatableImage image_;
};

}  // namespace cipherd::ring
