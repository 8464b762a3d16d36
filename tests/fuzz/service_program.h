// The program that the service's target serves, of the small context of tests/codec/wire_values.h.
#pragma once

#include "cipherd/v1/evaluation.pb.h"
#include "core/programs/program_spec.h"

namespace cipherd::fuzz {

// "p": y[j] = x[j]^2 + x[j + 1]^2; needs two keys.
programs::ProgramSpec ServiceProgram();
// As a daemon describes it.
v1::GetProgramResponse ServiceProgramDescription();

}  // namespace cipherd::fuzz
