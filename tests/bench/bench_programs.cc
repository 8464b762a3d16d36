#include "tests/bench/bench_programs.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/ckks/context_parameters.h"
#include "core/programs/catalog.h"
#include "core/programs/program_checker.h"
#include "proto/codec/program_codec.h"

namespace cipherd::bench {

using programs::Operation;
using programs::OperationKind;

absl::StatusOr<std::shared_ptr<const engine::InterpretedProgram>> LoadFashionMlp(
    const std::string& programs_directory) {
  const programs::ProgramCatalog catalog(programs_directory, codec::ParseProgramText, {});
  CIPHERD_ASSIGN_OR_RETURN(std::shared_ptr<const programs::CheckedProgram> checked,
                           catalog.Load({.name = "fashion_mlp"}));
  return engine::InterpretedProgram::Create(std::move(checked));
}

absl::StatusOr<std::shared_ptr<const engine::InterpretedProgram>> MakeSquarings(int levels) {
  programs::ProgramSpec spec;
  spec.name = absl::StrCat("squarings_", levels);
  CIPHERD_ASSIGN_OR_RETURN(spec.context,
                           ckks::MakeContextParameters({.log_n = 16,
                                                        .base_prime_bits = 50,
                                                        .depth_prime_bits = 45,
                                                        .max_depth = 23,
                                                        .p_prime_bits = 50,
                                                        .p_prime_count = 8,
                                                        .digit_count = 3},
                                                       ckks::SecurityPolicy::k128BitClassical));
  spec.inputs.push_back({"x"});
  std::string edge = "x";
  for (int level = 1; level <= levels; ++level) {
    const std::string suffix = std::to_string(level);
    spec.operations.push_back(
        Operation{.name = "square_" + suffix, .kind = OperationKind::kSquare, .a = edge});
    spec.operations.push_back(Operation{.name = "relinearize_" + suffix,
                                        .kind = OperationKind::kRelinearize,
                                        .a = "square_" + suffix});
    edge = "rescale_" + suffix;
    spec.operations.push_back(
        Operation{.name = edge, .kind = OperationKind::kRescale, .a = "relinearize_" + suffix});
  }
  spec.outputs.push_back({edge, edge});
  CIPHERD_ASSIGN_OR_RETURN(
      std::shared_ptr<const programs::CheckedProgram> checked,
      programs::CheckProgram(std::move(spec), {}, ckks::SecurityPolicy::k128BitClassical));
  return engine::InterpretedProgram::Create(std::move(checked));
}

}  // namespace cipherd::bench
