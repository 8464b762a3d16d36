// Typed views of exact values: what the evaluator works on.
//
// A Ciphertext or Plaintext is an ExactValue whose state has been checked against a context. They
// share tensors with the values they came from; copying one copies no payload.
#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "core/ckks/context_parameters.h"
#include "core/value/exact_value.h"
#include "core/value/tensor.h"

namespace cipherd::ckks {

// Basis Q, standard residues. Invariant: data is contiguous uint64
// [component 2|3, batch…, active_q_count(depth), N].
struct Ciphertext {
  value::Tensor data;
  int depth = 0;
  double scale = 0;
  value::PolynomialDomain domain = value::PolynomialDomain::kNtt;

  int component_count() const { return static_cast<int>(data.shape()[0]); }
  int limb_count() const { return static_cast<int>(data.shape()[data.shape().size() - 2]); }
  // Product of the batch axes; 1 for an unbatched ciphertext.
  int64_t batch_count() const;

  // InvalidArgument naming the field (relative to `path`), expected and actual where `value` is not
  // a lawful ciphertext of the context: type, context id, prime ids, depth, components, shape,
  // dtype, domain, basis, representation, scale.
  static absl::StatusOr<Ciphertext> FromValue(const value::ExactValue& value, std::string_view path,
                                              const ContextParameters& parameters,
                                              std::string_view context_id);
  value::ExactValue ToValue(const ContextParameters& parameters, std::string_view context_id) const;
};

// An encoded plaintext in RNS form. Invariant: data is contiguous uint64
// [batch…, active_q_count(depth), N], or with the limbs of P after those of Q where the basis is
// QP: what multiplies a ciphertext before it is divided by P (linear_transform.h).
struct Plaintext {
  value::Tensor data;
  int depth = 0;
  double scale = 0;
  value::PolynomialDomain domain = value::PolynomialDomain::kNtt;
  value::ModulusBasis basis = value::ModulusBasis::kQ;

  int limb_count() const { return static_cast<int>(data.shape()[data.shape().size() - 2]); }
  // Product of the batch axes; 1 for an unbatched plaintext.
  int64_t batch_count() const;

  // As Ciphertext::FromValue, for plaintexts of representation rns and basis Q.
  static absl::StatusOr<Plaintext> FromValue(const value::ExactValue& value, std::string_view path,
                                             const ContextParameters& parameters,
                                             std::string_view context_id);
  value::ExactValue ToValue(const ContextParameters& parameters, std::string_view context_id) const;
};

}  // namespace cipherd::ckks
