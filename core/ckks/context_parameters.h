// An explicit CKKS context: every number that two libraries must agree on, and its identity.
//
// Prime ids count through Q and then P: id i < |Q| is q_primes[i], id |Q| + k is p_primes[k]. Q is
// ordered so that the first prime is dropped first and the base prime is last. Rescaling drops
// whole groups: at depth d the active Q primes are those left after the first d groups, so the
// limbs of any basis are a suffix of Q, followed by P in basis QP.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace cipherd::ckks {

enum class SecretDistribution : uint8_t { kUniformTernary };

// Whether contexts below 128-bit security are admitted. kAllowInsecure is for tests; daemon and
// clients ask for it by an explicit flag and say so loudly.
enum class SecurityPolicy : uint8_t { k128BitClassical, kAllowInsecure };

struct ContextParameters {
  int log_n = 0;                        // ring degree N = 2^log_n; S = N / 2 slots
  std::vector<uint64_t> q_primes;       // first dropped first, base prime last; = 1 mod 2N, < 2^61
  std::vector<uint64_t> p_primes;       // key-switching primes, at least one
  std::vector<int32_t> rescale_groups;  // sizes of the groups dropped at depth 0, 1, …; sum < |Q|
  std::vector<std::vector<int32_t>> digits;  // partition of the ids of Q; ids ascending in a digit
  uint32_t galois_generator = 5;             // rotation by r is X -> X^(generator^r)
  double default_scale = 0;
  SecretDistribution secret_distribution = SecretDistribution::kUniformTernary;

  bool operator==(const ContextParameters&) const = default;

  int64_t ring_degree() const { return int64_t{1} << log_n; }
  int64_t slot_count() const { return ring_degree() / 2; }
  int q_count() const { return static_cast<int>(q_primes.size()); }
  int p_count() const { return static_cast<int>(p_primes.size()); }
  int max_depth() const { return static_cast<int>(rescale_groups.size()); }
  // Q primes dropped before `depth` (0 ≤ depth ≤ max_depth).
  int dropped_count(int depth) const;
  int active_q_count(int depth) const { return q_count() - dropped_count(depth); }
  // Ids of the active Q primes at `depth`, then those of P where `with_p`.
  std::vector<int64_t> ActivePrimeIds(int depth, bool with_p) const;
  // Product of the primes that rescaling at `depth` divides by (0 ≤ depth < max_depth), multiplied
  // as binary64 in the order of Q: what everything that predicts a scale divides by, so that
  // predicted and actual scales are equal bit for bit.
  double RescaleDivisor(int depth) const;
  // Galois element of a rotation by `step` of any sign: generator^(step mod S) mod 2N.
  uint32_t RotationElement(int64_t step) const;
  // Galois element of the conjugation: 2N - 1.
  uint32_t ConjugationElement() const { return static_cast<uint32_t>(2 * ring_degree() - 1); }
  // log2 of the product of the active Q primes at `depth`.
  double log_q(int depth) const;
  // log2 of the product of all primes of Q and P.
  double log_qp() const;

  // InvalidArgument naming the field, expected and actual: structure, primality, congruence,
  // duplicates, ranges (log_n in [4, 17], at most 64 primes), each digit's product below P's (else
  // a key switch is noise), default scale finite and > 1; and the security bound unless `policy`
  // admits insecure ones.
  absl::Status Validate(SecurityPolicy policy) const;

  // Deterministic encoding of every field above (versioned, little-endian); what the id hashes.
  std::vector<uint8_t> CanonicalBytes() const;
  // SHA-256 of CanonicalBytes, 64 hexadecimal digits.
  std::string ContextId() const;
};

// Largest log2(QP) of a context with 128-bit classical security for a uniform ternary secret and
// errors of standard deviation 3.19 (Bossuat et al., "Security Guidelines for Implementing
// Homomorphic Encryption", eprint 2024/463, table 5.2): 106, 214, 430, 868, 1747, 3523 for log_n =
// 12 … 17, 0 below.
int MaxSecureLogQp(int log_n);

// What a generated context is asked for. Sizes in bits.
struct ContextRequest {
  int log_n = 0;
  int base_prime_bits = 60;
  int depth_prime_bits = 40;  // one prime a rescaling group
  int max_depth = 0;
  int p_prime_bits = 60;
  int p_prime_count = 1;
  int digit_count = 1;       // Q split into this many digits of consecutive primes
  double default_scale = 0;  // 0: 2^depth_prime_bits
};

// A request whose every prime, P included, is below 2^50, with 128-bit security: what kernels
// compute with doubles (kernels::Arithmetic::kFma). InvalidArgument unless log_n is 13 to 16.
absl::StatusOr<ContextRequest> FmaContextRequest(int log_n);

// Primes chosen deterministically (core/ring/primes.h), distinct, each = 1 mod 2N, the depth primes
// alternating around 2^depth_prime_bits. Validated with `policy`.
absl::StatusOr<ContextParameters> MakeContextParameters(const ContextRequest& request,
                                                        SecurityPolicy policy);

}  // namespace cipherd::ckks
