// The smallest secure context for what a circuit needs.
//
//   CIPHERD_ASSIGN_OR_RETURN(
//       ckks::ContextParameters context,
//       ChooseContext({.depth = 3, .slot_count = 1024, .log2_scale = 40, .base_prime_bits = 48}));
//
// The least ring degree whose bound for 128-bit security holds Q and P, then the digits of key
// switching that cost least: more primes in a digit mean fewer digits and a larger P. The prime
// that is dropped at a depth is the nearest to the scale there, so that scales hardly drift over
// depths.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "core/ckks/context_parameters.h"

namespace cipherd::planning {

struct ContextNeeds {
  // Rescaling groups, each of one prime.
  int depth = 0;
  // At least so many.
  int64_t slot_count = 1;
  // Of the default scale and the primes that rescaling drops: log_n + 8 to 58.
  int log2_scale = 40;
  // Of the prime that is left at the last depth: above log2_scale, at most 60.
  int base_prime_bits = 50;
  // Ring degrees that are tried: 2^12 to 2^17.
  int min_log_n = 12;
  int max_log_n = 16;
};

// Deterministic: the same needs give the same context for ever. InvalidArgument where a need is out
// of range; ResourceExhausted, saying what is too large, where no degree holds it.
absl::StatusOr<ckks::ContextParameters> ChooseContext(const ContextNeeds& needs);

// log2 of the largest product of a digit's primes over that of P's.
double Log2DigitOverP(const ckks::ContextParameters& context);

}  // namespace cipherd::planning
