// The programs that the daemon is measured with.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/engine/interpreted_program.h"

namespace cipherd::bench {

// The served model: log N = 14.
absl::StatusOr<std::shared_ptr<const engine::InterpretedProgram>> LoadFashionMlp(
    const std::string& programs_directory);

// log N = 16, 24 limbs of Q, 3 digits, 8 primes of P. The input is squared, relinearized and
// rescaled `levels` times over. One level moves as many bytes as it takes to compute; several keep
// the device busier than the bus.
absl::StatusOr<std::shared_ptr<const engine::InterpretedProgram>> MakeSquarings(int levels);

}  // namespace cipherd::bench
