#include "core/kernels/operand_checks.h"

#include <algorithm>
#include <bit>
#include <cstdint>

namespace cipherd::kernels {
namespace {

void CheckKeyForm(LaunchCheck& check, const LimbPrimes& limbs, int digit_count,
                  const KeySlot& key) {
  for (int d = 0; d < std::min(digit_count, kMaxDigits); ++d) {
    check.RequireRange("key.key_digits", 0, kMaxDigits - 1, key.key_digits[d]);
  }
  check.RequireRange("key.key_limb_count", 1, kMaxLimbs, key.key_limb_count);
  check.RequireRange("key.first_limb", 0, key.key_limb_count - limbs.count, key.first_limb);
}

}  // namespace

void CheckConversion(LaunchCheck& check, const ring::BasisConversionTables& tables,
                     int source_count, int target_count) {
  check.Require(tables.source_count == source_count, "conversion.source_count",
                "the number of source limbs", tables.source_count);
  check.Require(tables.target_count == target_count, "conversion.target_count",
                "the number of target limbs", tables.target_count);
  check.Read("conversion.hat", tables.hat,
             int64_t{source_count} * target_count * int64_t{sizeof(uint64_t)});
}

void CheckPlan(LaunchCheck& check, const LiftPlan& plan) {
  check.Limbs(plan.packed);
  check.Limbs(plan.target);
  check.RequireRange("plan.lift_count", 1, kMaxFusedDigits, plan.lift_count);
  int packed = 0;
  for (int l = 0; l < std::min(plan.lift_count, kMaxFusedDigits); ++l) {
    const LimbLift& lift = plan.lifts[l];
    const int sources = lift.conversion.source_count;
    check.RequireRange("lift.first_packed", packed, packed, lift.first_packed);
    check.RequireRange("lift.conversion.source_count", 1, kMaxFusedSources, sources);
    check.Require(lift.own_limbs >> std::min(plan.target.count, 63) == 0, "lift.own_limbs",
                  "bits of target limbs", static_cast<int64_t>(lift.own_limbs));
    CheckConversion(check, lift.conversion, sources,
                    plan.target.count - std::popcount(lift.own_limbs));
    packed += sources;
  }
  check.RequireRange("plan.packed.count", packed, packed, plan.packed.count);
}

int OperandLimbs(const LiftPlan& plan) {
  int count = 1;
  for (int p = 0; p < std::min(plan.packed.count, kMaxLimbs); ++p) {
    count = std::max(count, plan.source_limb[p] + 1);
  }
  for (int l = 0; l < std::min(plan.lift_count, kMaxFusedDigits); ++l) {
    count = std::max(count, static_cast<int>(std::bit_width(plan.lifts[l].own_limbs)));
  }
  return count;
}

void CheckKey(LaunchCheck& check, const LimbPrimes& limbs, int digit_count, const KeySlot& key) {
  CheckKeyForm(check, limbs, digit_count, key);
  check.Read("key.slot", key.slot, sizeof(*key.slot));
}

void CheckRotations(LaunchCheck& check, const LimbPrimes& limbs, const RotationSums& sums,
                    int64_t batch, ConstPolyView digits, ConstPolyView addend) {
  const int digit_count = std::clamp(sums.digit_count, 0, kMaxDigits - 1);
  int addend_limbs = 1;
  for (int l = 0; l < std::min(limbs.count, kMaxLimbs); ++l) {
    if (sums.addend_scalars[l] != 0) addend_limbs = l + 1;
  }
  check.Require(addend.outer_count % 2 == 0, "addend.outer_count", "a multiple of 2",
                addend.outer_count);
  check.WholeInput("addend", addend, addend_limbs, addend.outer_count, Overlap::kDisjoint);
  bool has_keys = false;
  for (int r = 0; r < std::min(sums.rotation_count, kMaxSumRotations); ++r) {
    const RotationSums::Rotation& rotation = sums.rotations[r];
    check.RequireRange("rotation.addend_item", 0, addend.outer_count / 2 - batch,
                       rotation.addend_item);
    check.GaloisElement(rotation.galois_element);
    if (rotation.key_slot == nullptr) {
      check.RequireRange("rotation.galois_element without a key", 1, 1, rotation.galois_element);
      continue;
    }
    if (!has_keys) {
      has_keys = true;
      check.RequireRange("sums.digit_count", 1, kMaxDigits - 1, sums.digit_count);
      check.Require(digits.outer_count % std::max(digit_count, 1) == 0, "digits.outer_count",
                    "the same number for each digit", digits.outer_count);
      check.WholeInput("digits", digits, limbs.count, digits.outer_count, Overlap::kDisjoint);
      CheckKeyForm(check, limbs, digit_count, sums.key);
    }
    check.RequireRange("rotation.digit_item", 0,
                       digits.outer_count / std::max(digit_count, 1) - batch, rotation.digit_item);
    check.Read("rotation.key_slot", rotation.key_slot, sizeof(*rotation.key_slot));
  }
}

}  // namespace cipherd::kernels
