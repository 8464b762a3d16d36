// How the linear transforms of a circuit are split into baby and giant steps, seen together: every
// distinct rotation is a key that the client makes, sends and the daemon holds.
//
//   BabySpans spans = ChooseSpans(circuit);
//
// The time of a split is that of its rotations, a giant one counted as BsgsPlan::kGiantStepCost
// baby ones. Of the splits of a transform whose time
// is within kSpanSlack of the least, those are taken that leave the fewest distinct rotations in
// the whole circuit.
#pragma once

#include "core/planning/circuit.h"
#include "core/planning/placement.h"

namespace cipherd::planning {

inline constexpr double kSpanSlack = 0.1;

// `circuit` has passed CheckCircuit.
BabySpans ChooseSpans(const Circuit& circuit);

}  // namespace cipherd::planning
