// Whether numbers are within what a program was planned for: ciphertexts hide them from the daemon,
// so that nobody but the client can tell.
//
//   RETURN_IF_ERROR(CheckInputRange(program.inputs[0], rows, "inputs['x']"));
//   // inputs['x'][17][3]: expected a number from -0.5 to 1.5, what the program was planned for:
//   ...
//
// Polynomials in place of functions are far off outside the range of the samples they were made
// for. A result whose coefficients outgrow the modulus comes back reduced by it, which moves every
// slot by multiples of q/scale (q: the modulus at the output's depth). Such a result passes for a
// right one only where all its numbers chance to be small: the larger q/scale is beside the
// output's magnitude_bound, the less likely. The planner gives the base prime what room there is.
//
// Errors are OutOfRange and name the place, never the number. Thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "absl/status/status.h"
#include "client/slot_layout.h"
#include "core/programs/program_spec.h"

namespace cipherd::client {

// Results are refused beyond so many times ProgramOutput::magnitude_bound. Those between are right
// as a rule: an item unlike the samples, within the modulus.
inline constexpr double kMostTimesMagnitudeBound = 4;

// `path` names the input in messages.
absl::Status CheckInputRange(const programs::ProgramInput& input, const Vectors& items,
                             std::string_view path);
// The numbers of items that stand one after the other.
absl::Status CheckInputRange(const programs::ProgramInput& input, std::span<const double> numbers,
                             std::string_view path);

// `items` are decrypted; the first one is number `first_item` in messages.
absl::Status CheckOutputRange(const programs::ProgramOutput& output, const Vectors& items,
                              std::string_view path, int64_t first_item);

}  // namespace cipherd::client
