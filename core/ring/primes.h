// Primes for number theoretic transforms, and their roots of unity. Everything here is
// deterministic: the same arguments give the same primes for ever (tests/ring pins them).
//
//   const std::vector<int> bits = {50, 40, 40, 40};
//   CIPHERD_ASSIGN_OR_RETURN(std::vector<uint64_t> primes, GeneratePrimes(/*log_n=*/14, bits));
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

namespace cipherd::ring {

// Degrees that this library knows: N = 2^log_n.
inline constexpr int kMinLogN = 4;
inline constexpr int kMaxLogN = 17;

// InvalidArgument, naming the range, unless kMinLogN <= log_n <= kMaxLogN.
absl::Status ValidateLogN(int log_n);

// Whether n is prime. Exact for all 64-bit n.
bool IsPrime(uint64_t n);

// Where primes lie that are asked for by their number of bits.
enum class PrimePlacement : uint8_t {
  // In (2^(bits-1), 2^bits), the greatest first: a prime of b bits packs into b bits.
  kBelow,
  // Nearest to 2^bits on either side, the nearest first: scales of 2^bits drift least.
  kAround,
};

// Returns distinct primes q = 1 mod 2N, the i-th of them the first in the order of `placement` for
// bits[i] which the ones before it have not taken. All are below 2^61 (so that kAround of 61 bits
// is kBelow). InvalidArgument where log_n is out of range, a bit size is not in [log_n + 2, 61], or
// there are not so many such primes; the message names the entry of `bits`.
absl::StatusOr<std::vector<uint64_t>> GeneratePrimes(
    int log_n, std::span<const int> bits, PrimePlacement placement = PrimePlacement::kBelow);

// InvalidArgument, saying what is wrong, unless q is a prime below 2^61 with q = 1 mod 2N.
absl::Status ValidatePrime(uint64_t q, int log_n);

// Returns the smallest psi whose powers mod q have period 2N. Requires ValidatePrime(q, log_n).
uint64_t SmallestPrimitiveRoot(uint64_t q, int log_n);

}  // namespace cipherd::ring
