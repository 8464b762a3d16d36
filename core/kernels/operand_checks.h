// The checks of operands that are more than polynomials: plans, keys, sums of rotations. Each adds
// its faults and accesses to a LaunchCheck.
#pragma once

#include "core/kernels/fused_kernels.h"
#include "core/kernels/launch_check.h"
#include "core/kernels/poly_view.h"
#include "core/kernels/rotation_sums.h"
#include "core/ring/ring_tables.h"

namespace cipherd::kernels {

// Tables of one conversion lie together, so that one of them stands for all.
void CheckConversion(LaunchCheck& check, const ring::BasisConversionTables& tables,
                     int source_count, int target_count);

void CheckPlan(LaunchCheck& check, const LiftPlan& plan);
// Limbs that an operand of the plan has at least.
int OperandLimbs(const LiftPlan& plan);

// Of the key itself only the slot is known here.
void CheckKey(LaunchCheck& check, const LimbPrimes& limbs, int digit_count, const KeySlot& key);

// Rotations of `batch` items, with their keys, digits and addends; not the factors.
void CheckRotations(LaunchCheck& check, const LimbPrimes& limbs, const RotationSums& sums,
                    int64_t batch, ConstPolyView digits, ConstPolyView addend);

}  // namespace cipherd::kernels
