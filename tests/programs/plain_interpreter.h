// Evaluates a program in the clear: every edge is S complex slots. The reference that encrypted
// evaluations are compared with; it shares no arithmetic with core.
#pragma once

#include <complex>
#include <map>
#include <string>
#include <vector>

#include "core/programs/constants.h"
#include "core/programs/program_spec.h"

namespace cipherd::programs {

using ComplexSlots = std::vector<std::complex<double>>;

// Every edge by name, from `inputs` by name (missing slots are 0). Constants are rounded by
// nothing, scales and depths mean nothing. Requires a program that the checker accepts.
std::map<std::string, ComplexSlots> EvaluatePlain(
    const ProgramSpec& spec, const Constants& constants,
    const std::map<std::string, ComplexSlots>& inputs);

}  // namespace cipherd::programs
