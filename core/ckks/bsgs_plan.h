// Which rotations a linear transform needs, by baby and giant steps.
//
//   CIPHERD_ASSIGN_OR_RETURN(BsgsPlan plan, BsgsPlan::Make({0, 1, 2, 3}, slot_count, 0));
//   plan.Keys()             // what ApplyLinearTransform reads
//   plan.diagonal_basis()   // what its diagonals are encoded modulo
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "core/ckks/evaluation_keys.h"
#include "core/value/exact_value.h"

namespace cipherd::ckks {

// How a set of diagonals is walked. Needs no context beyond the slot count, so that the checker and
// the client derive exactly the same rotation steps.
class BsgsPlan {
 public:
  // A baby step is an inner product with a key; a giant step raises digits before it, and divides
  // by P: 180 against 31 µs on an H200 at N = 2^16. But keys of either are of one size: half of it.
  static constexpr int64_t kGiantStepCost = 3;

  // One diagonal: offset = giant + baby (mod S).
  struct Term {
    int64_t offset;
    int64_t baby;
  };

  // `offsets` in [0, S), distinct, at least one. `baby_span` ≥ 1: offsets are split as
  // giant = offset - offset mod baby_span, baby = offset mod baby_span; 0 chooses the span of the
  // least cost, a giant step counted as kGiantStepCost baby steps; the least one among equals.
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

  // Whether the plan is evaluated with double hoisting, which it is where fewer polynomials are
  // divided by P then: one for each giant step and two at the end, instead of two for each baby
  // step and, with giant steps, two at the end.
  bool hoists_twice() const { return hoists_twice_; }
  // What its diagonals are encoded modulo: QP with double hoisting, else Q.
  value::ModulusBasis diagonal_basis() const {
    return hoists_twice_ ? value::ModulusBasis::kQP : value::ModulusBasis::kQ;
  }

 private:
  int64_t slot_count_ = 0;
  int64_t baby_span_ = 1;
  std::map<int64_t, std::vector<Term>> giants_;
  bool hoists_twice_ = false;
};

}  // namespace cipherd::ckks
