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
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "core/ckks/ciphertext.h"
#include "core/ckks/evaluation_keys.h"
#include "core/ckks/evaluator.h"

namespace cipherd::ckks {

// How a set of diagonals is walked. Needs no context beyond the slot count, so that the checker and
// the client derive exactly the same rotation steps.
class BsgsPlan {
 public:
  // One diagonal: offset = giant + baby (mod S).
  struct Term {
    int64_t offset;
    int64_t baby;
  };

  // `offsets` in [0, S), distinct, at least one. `baby_span` ≥ 1: offsets are split as
  // giant = offset - offset mod baby_span, baby = offset mod baby_span; 0 chooses the span that
  // needs the fewest rotations, the least one among equals.
  static absl::StatusOr<BsgsPlan> Make(std::vector<int64_t> offsets, int64_t slot_count,
                                       int64_t baby_span);

  int64_t slot_count() const { return slot_count_; }
  int64_t baby_span() const { return baby_span_; }
  // Terms by giant step, ascending.
  const std::map<int64_t, std::vector<Term>>& giants() const { return giants_; }
  // Distinct nonzero baby steps and giant steps, ascending.
  std::vector<int64_t> BabySteps() const;
  std::vector<int64_t> GiantSteps() const;
  // The keys of all of them.
  std::vector<KeyId> Keys() const;

 private:
  int64_t slot_count_ = 0;
  int64_t baby_span_ = 1;
  std::map<int64_t, std::vector<Term>> giants_;
};

// Evaluates `plan` on `a` (NTT domain, two components). `diagonals` holds, by offset, the encoded
// diagonals already rotated by minus their giant step, all at a's depth and of one scale; the
// result has scale a.scale · that scale, at a's depth.
absl::StatusOr<Ciphertext> ApplyLinearTransform(const Evaluator& evaluator, const BsgsPlan& plan,
                                                const std::map<int64_t, Plaintext>& diagonals,
                                                const Ciphertext& a, const KeyTable& keys,
                                                runtime::Stream& stream);

}  // namespace cipherd::ckks
