// A plaintext matrix times an encrypted vector, by diagonals in baby and giant steps.
//
// The S x S matrix M is given by its nonzero generalised diagonals d_t[j] = M[j][(j + t) mod S], so
// that
//   (M x)[j] = sum_t d_t[j] · x[(j + t) mod S].
// With t = g + b, g a multiple of the baby-step span:
//   M x = sum_g rotate_g( sum_b rotate_{-g}(d_{g+b}) ⊙ rotate_b(x) )
// which needs one hoisted rotation a distinct b and one rotation a distinct g (Halevi, Shoup,
// "Faster Homomorphic Linear Transformations in HElib", eprint 2018/244, section 6.3). Slot vectors
// of diagonals are rotated by -g before they are encoded, once, when a program is loaded.
//
// Where the plan says so, it is evaluated with double hoisting (double_hoisting.h), for which
// diagonals are encoded modulo QP: (Q + P) / Q times the memory of those modulo Q, in limbs.
#pragma once

#include <cstdint>
#include <map>

#include "absl/status/statusor.h"
#include "core/ckks/bsgs_plan.h"
#include "core/ckks/ciphertext.h"
#include "core/ckks/evaluation_keys.h"
#include "core/ckks/evaluator.h"

namespace cipherd::ckks {

// Evaluates `plan` on `a` (NTT domain, two components). `diagonals` holds, by offset, the encoded
// diagonals already rotated by minus their giant step, all at a's depth, of one scale and of the
// plan's diagonal_basis(); the result has scale a.scale · that scale, at a's depth.
absl::StatusOr<Ciphertext> ApplyLinearTransform(const Evaluator& evaluator, const BsgsPlan& plan,
                                                const std::map<int64_t, Plaintext>& diagonals,
                                                const Ciphertext& a, const KeyTable& keys,
                                                runtime::Stream& stream);

}  // namespace cipherd::ckks
