// A checked program directory as the engine's program.
//
//   CIPHERD_ASSIGN_OR_RETURN(auto program, InterpretedProgram::Create(checked));
//   CIPHERD_RETURN_IF_ERROR(engine->AddProgram(program));
#pragma once

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "core/programs/program_checker.h"
#include "server/engine/program.h"

namespace cipherd::engine {

class InterpretedProgram final : public Program {
 public:
  static absl::StatusOr<std::shared_ptr<const InterpretedProgram>> Create(
      std::shared_ptr<const programs::CheckedProgram> checked);

  const ProgramInfo& info() const override { return info_; }
  absl::StatusOr<EvaluationTrees> MakeTrees(const TensorFactory& allocate) const override;

  // The example has pseudo-random residues for inputs and keys, the same every time, so that a
  // replay that skips or repeats an operation shows.
  absl::StatusOr<ProgramBinding> Bind(runtime::Device& device, runtime::Stream& stream,
                                      const ServingSettings& settings) const override;

  const programs::CheckedProgram& checked() const { return *checked_; }

 private:
  explicit InterpretedProgram(std::shared_ptr<const programs::CheckedProgram> checked)
      : checked_(std::move(checked)) {}

  const std::shared_ptr<const programs::CheckedProgram> checked_;
  ProgramInfo info_;
};

}  // namespace cipherd::engine
