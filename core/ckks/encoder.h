// Slots to polynomial and back: the canonical embedding of CKKS (Cheon, Kim, Kim, Song,
// "Homomorphic Encryption for Arithmetic of Approximate Numbers", eprint 2016/421, section 2.2).
//
// S = N/2 complex slots, slot j is the value at zeta^(generator^j), zeta = exp(i·pi/N). Needs no
// secret: programs encode their constants with it, clients their messages. Host only. Thread-safe.
#pragma once

#include <complex>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "core/ckks/ciphertext.h"
#include "core/ckks/context_parameters.h"

namespace cipherd::ckks {

class Context;

class Encoder {
 public:
  explicit Encoder(std::shared_ptr<const Context> context);
  ~Encoder();
  Encoder(Encoder&&) noexcept;

  // Encodes at most S real numbers (the rest are 0) at `depth` and `scale` into pageable host
  // memory, NTT domain, modulo the primes of `basis`. InvalidArgument where there are too many, one
  // is not finite, or a scaled coefficient exceeds a quarter of the modulus at that depth (naming
  // the largest magnitude and the bound).
  absl::StatusOr<Plaintext> Encode(std::span<const double> slots, int depth, double scale,
                                   value::ModulusBasis basis = value::ModulusBasis::kQ) const;
  absl::StatusOr<Plaintext> EncodeComplex(
      std::span<const std::complex<double>> slots, int depth, double scale,
      value::ModulusBasis basis = value::ModulusBasis::kQ) const;

  // The S slots of a host plaintext of basis Q in either domain, divided by its scale.
  absl::StatusOr<std::vector<std::complex<double>>> Decode(const Plaintext& plaintext) const;

 private:
  struct Tables;
  std::shared_ptr<const Context> context_;
  std::unique_ptr<const Tables> tables_;
};

}  // namespace cipherd::ckks
