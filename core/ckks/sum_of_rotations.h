// The sum of several rotations of one ciphertext: one ModUp and one division by P for all of them.
//
//   // Slot j receives the sum of slots j to j + 3.
//   CIPHERD_ASSIGN_OR_RETURN(
//       Ciphertext sums, SumOfRotations(evaluator, a, std::vector<int64_t>{0, 1, 2, 3}, keys,
//       stream));
#pragma once

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "core/ckks/ciphertext.h"
#include "core/ckks/evaluation_keys.h"
#include "core/ckks/evaluator.h"
#include "core/runtime/stream.h"

namespace cipherd::ckks {

// The sum of `a` (NTT domain, two components) rotated by each of `steps`, at least one, of any
// sign; one that is 0 mod S needs no key. Its words differ from those of rotations that are added,
// within the noise: one rounding for all. Enqueues on `stream`; errors as of Evaluator.
absl::StatusOr<Ciphertext> SumOfRotations(const Evaluator& evaluator, const Ciphertext& a,
                                          std::span<const int64_t> steps, const KeyTable& keys,
                                          runtime::Stream& stream);

}  // namespace cipherd::ckks
