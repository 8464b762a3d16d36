// The keys of service_program.h as PutKeys receives them.
#pragma once

#include <vector>

#include "cipherd/v1/evaluation.pb.h"
#include "core/value/exact_value.h"

namespace cipherd::fuzz {

// A relinearization key and that of rotations by 1, of random residues.
std::vector<value::ExactValue> SeedKeys();
// The header, then for each key its description and its payload.
std::vector<v1::PutKeysRequest> KeySetMessages();

}  // namespace cipherd::fuzz
