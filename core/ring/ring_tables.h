// The constants that device work on a ring needs, as plain structs of addresses.
//
// Z_Q[X]/(X^N + 1) in residue number system form: one limb, that is one polynomial modulo one
// prime, per prime. A prime is known by its row in `primes`. Rows and everything they point to live
// in one memory space: built on the host by rns_basis.h, copied to a device by ckks::Context. Plain
// data: no ownership.
#pragma once

#include <cstdint>

namespace cipherd::ring {

// Primes below 2^kFmaPrimeBits have constants for the policy on doubles (math/fma_arithmetic.h)
// too.
inline constexpr int kFmaPrimeBits = 50;

// Constants of one prime q < 2^61, q = 1 mod 2N.
struct PrimeConstants {
  uint64_t q;
  // floor(2^128 / q), high and low word: Barrett reduction of any 128-bit value.
  uint64_t barrett_high;
  uint64_t barrett_low;
  // N^-1 mod q, and floor(N^-1 · 2^64 / q).
  uint64_t n_inverse;
  uint64_t n_inverse_shoup;
  // N^-1 · psi_inverse_powers[1] mod q and its Shoup quotient: the last layer of the inverse
  // transform divides by N on the way.
  uint64_t n_inverse_root;
  uint64_t n_inverse_root_shoup;
  // N words each, psi the smallest primitive 2N-th root of unity mod q:
  // psi_powers[i] = psi^bitrev(i), psi_inverse_powers[i] = psi^-bitrev(i), bitrev over log2 N bits,
  // each beside its Shoup quotient floor(w · 2^64 / q).
  const uint64_t* psi_powers;
  const uint64_t* psi_powers_shoup;
  const uint64_t* psi_inverse_powers;
  const uint64_t* psi_inverse_powers_shoup;
  // For q < 2^kFmaPrimeBits, else 0 and null: q and fl(1/q); the same powers in [-q/2, q/2].
  double q_double;
  double q_inverse;
  const double* psi_powers_centred;
  const double* psi_inverse_powers_centred;
};

struct RingTables {
  int log_n;        // N = 2^log_n
  int prime_count;  // rows
  const PrimeConstants* primes;
  bool all_fma;  // every prime is below 2^kFmaPrimeBits
};

// Constants of a fast basis conversion from primes {q_i} to primes {p_j}, Q = prod q_i (Halevi,
// Polyakov, Shoup, "An Improved RNS Variant of the BFV Homomorphic Encryption Scheme", eprint
// 2018/117, section 2): x = sum_i y_i · (Q / q_i) - v · Q with y_i = [x_i · (Q/q_i)^-1]_{q_i} and v
// = round(sum_i y_i / q_i), so that the result is the representative of x in [-Q/2, Q/2).
struct BasisConversionTables {
  int source_count;
  int target_count;
  const uint16_t* source_primes;      // [source] rows in RingTables::primes
  const uint16_t* target_primes;      // [target]
  const uint64_t* hat_inverse;        // [source]  (Q/q_i)^-1 mod q_i
  const uint64_t* hat_inverse_shoup;  // [source]
  const uint64_t* hat;                // [target][source]  Q/q_i mod p_j
  const uint64_t* source_product;     // [target]  Q mod p_j
  const double* source_inverse;       // [source]  1 / q_i
};

}  // namespace cipherd::ring
