// Decryption, for its owner's eyes or for others'.
//
//   Decryptor decryptor(secret_key);
//   ASSIGN_OR_RETURN(Plaintext message, decryptor.Decrypt(ciphertext));
//   ASSIGN_OR_RETURN(std::vector<std::complex<double>> slots, encoder.Decode(message));
//
// What CKKS decrypts to is the message plus the error of the ciphertext, and the error is a linear
// function of the secret key: whoever sees decrypted results and knows the ciphertexts can solve
// for the key (Li, Micciancio, "On the Security of Homomorphic Encryption on Approximate Numbers",
// eprint 2020/1533; CPA^D). So a decrypted result must not leave its owner as it is, not rounded to
// a few digits either, and not by way of an error report or a retry that depends on it.
// DecryptForSharing drowns the error in fresh noise first.
//
// Ciphertexts are contiguous host memory, 2 or 3 components, either domain (InvalidArgument
// otherwise). The secret key must outlive the decryptor. Thread-safe.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/ckks/ciphertext.h"
#include "core/secret/random.h"
#include "core/secret/secret_key.h"

namespace cipherd::secret {

// How much noise a shared result gets: Gaussian of standard deviation
//   sigma = error_bound · sqrt(result_count · N) · 2^(statistical_bits - 1)
// on each coefficient. Given the message, results with and without the ciphertexts' errors then
// have Kullback-Leibler divergence at most result_count · N · error_bound^2 / (2 · sigma^2), so by
// Pinsker's inequality a total variation distance of at most 2^-statistical_bits.
// The sampler computes in doubles: its tail is cut at mass 2^-53 a coordinate, and a magnitude
// above 2^52 would leave low bits of the error uncovered. Both bound what can be promised.
struct FloodingOptions {
  double error_bound =
      0;  // of the error's coefficients in magnitude, as the circuit's analysis gives it
  int statistical_bits = 0;  // 1 to 38
  int64_t result_count = 1;  // results shared under this key in its life

  // InvalidArgument where a number is out of range (error_bound finite, > 0; counts ≥ 1).
  absl::Status Validate() const;
  double StandardDeviation(int64_t ring_degree) const;
};

class Decryptor {
 public:
  explicit Decryptor(const SecretKey& secret_key) : secret_key_(secret_key) {}

  // c0 + c1 · s (+ c2 · s^2), NTT domain, in pageable host memory.
  absl::StatusOr<ckks::Plaintext> Decrypt(const ckks::Ciphertext& ciphertext) const;

  // The same with flooding noise added. InvalidArgument where 8.6 standard deviations exceed a
  // quarter of the modulus at that depth (the result would be noise), or 2^52 (see above).
  absl::StatusOr<ckks::Plaintext> DecryptForSharing(const ckks::Ciphertext& ciphertext,
                                                    const FloodingOptions& flooding,
                                                    Random& random) const;

 private:
  const SecretKey& secret_key_;
};

}  // namespace cipherd::secret
