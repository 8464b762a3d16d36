#include "tests/ckks/schedule.h"

#include "core/base/status_macros.h"
#include "core/ckks/linear_transform.h"

namespace cipherd::testing {

using ckks::Ciphertext;
using ckks::KeyId;
using ckks::Plaintext;

std::vector<KeyId> ScheduleKeys(int64_t slot_count) {
  return {KeyId::Relinearization(),       KeyId::Conjugation(),
          KeyId::Rotation(1, slot_count), KeyId::Rotation(4, slot_count),
          KeyId::Rotation(8, slot_count), KeyId::Rotation(-7, slot_count)};
}

absl::StatusOr<std::map<std::string, Ciphertext>> RunEveryOperation(Party& party,
                                                                    const Ciphertext& a,
                                                                    const Ciphertext& b,
                                                                    const Plaintext& p,
                                                                    const Plaintext& p_over_qp) {
  const ckks::Evaluator& evaluator = *party.evaluator;
  runtime::Stream& stream = *party.stream;
  std::map<std::string, Ciphertext> out;
  CIPHERD_ASSIGN_OR_RETURN(out["Add"], evaluator.Add(a, b, stream));
  CIPHERD_ASSIGN_OR_RETURN(out["Subtract"], evaluator.Subtract(a, b, stream));
  CIPHERD_ASSIGN_OR_RETURN(out["Negate"], evaluator.Negate(a, stream));
  CIPHERD_ASSIGN_OR_RETURN(out["AddPlain"], evaluator.AddPlain(a, p, stream));
  CIPHERD_ASSIGN_OR_RETURN(out["SubtractPlain"], evaluator.SubtractPlain(a, p, stream));
  CIPHERD_ASSIGN_OR_RETURN(out["MultiplyPlain"], evaluator.MultiplyPlain(a, p, stream));
  CIPHERD_ASSIGN_OR_RETURN(out["ToCoefficient"], evaluator.ToCoefficient(a, stream));
  CIPHERD_ASSIGN_OR_RETURN(out["ToNtt"], evaluator.ToNtt(out["ToCoefficient"], stream));
  CIPHERD_ASSIGN_OR_RETURN(out["Multiply"], evaluator.Multiply(a, b, stream));
  CIPHERD_ASSIGN_OR_RETURN(out["Square"], evaluator.Square(a, stream));
  CIPHERD_ASSIGN_OR_RETURN(out["Relinearize"],
                           evaluator.Relinearize(out["Multiply"], party.table, stream));
  CIPHERD_ASSIGN_OR_RETURN(out["RelinearizeAndRescale"],
                           evaluator.RelinearizeAndRescale(out["Multiply"], party.table, stream));
  CIPHERD_ASSIGN_OR_RETURN(out["Rescale2"], evaluator.Rescale(out["Relinearize"], stream));
  CIPHERD_ASSIGN_OR_RETURN(out["Rescale3"], evaluator.Rescale(out["Multiply"], stream));
  CIPHERD_ASSIGN_OR_RETURN(out["DropToDepth"], evaluator.DropToDepth(a, 2, stream));
  CIPHERD_ASSIGN_OR_RETURN(out["Rotate"], evaluator.Rotate(a, -7, party.table, stream));
  CIPHERD_ASSIGN_OR_RETURN(out["RotateDeeper"],
                           evaluator.Rotate(out["DropToDepth"], 4, party.table, stream));
  CIPHERD_ASSIGN_OR_RETURN(out["RotateBySlotCount"],
                           evaluator.Rotate(a, party.slot_count(), party.table, stream));
  CIPHERD_ASSIGN_OR_RETURN(out["Conjugate"], evaluator.Conjugate(a, party.table, stream));
  CIPHERD_ASSIGN_OR_RETURN(const ckks::HoistedCiphertext hoisted, evaluator.Hoist(a, stream));
  CIPHERD_ASSIGN_OR_RETURN(out["RotateHoisted"],
                           evaluator.RotateHoisted(hoisted, 1, party.table, stream));
  // Diagonals 0, 1, 4 and 5: baby step 1, giant step 4. With diagonal 8, one giant step more, and
  // too many for double hoisting.
  CIPHERD_ASSIGN_OR_RETURN(const ckks::BsgsPlan plan,
                           ckks::BsgsPlan::Make({0, 1, 4, 5}, party.slot_count(), 4));
  CIPHERD_ASSIGN_OR_RETURN(
      out["ApplyLinearTransform"],
      ApplyLinearTransform(evaluator, plan,
                           {{0, p_over_qp}, {1, p_over_qp}, {4, p_over_qp}, {5, p_over_qp}}, a,
                           party.table, stream));
  CIPHERD_ASSIGN_OR_RETURN(const ckks::BsgsPlan once,
                           ckks::BsgsPlan::Make({0, 1, 4, 5, 8}, party.slot_count(), 4));
  CIPHERD_ASSIGN_OR_RETURN(
      out["ApplyLinearTransformHoistedOnce"],
      ApplyLinearTransform(evaluator, once, {{0, p}, {1, p}, {4, p}, {5, p}, {8, p}}, a,
                           party.table, stream));
  return out;
}

}  // namespace cipherd::testing
