#include "server/engine/program.h"

#include <utility>

#include "core/base/status_macros.h"

namespace cipherd::engine {

absl::Status DescribeTrees(const Program& program, ProgramInfo& info) {
  CIPHERD_ASSIGN_OR_RETURN(const EvaluationTrees trees,
                           program.MakeTrees(&value::Tensor::AllocateHost));
  CIPHERD_ASSIGN_OR_RETURN(info.input_signature,
                           execution::ValueTreeSignature::FromTree(trees.inputs, "inputs"));
  CIPHERD_ASSIGN_OR_RETURN(info.output_signature,
                           execution::ValueTreeSignature::FromTree(trees.outputs, "outputs"));
  info.input_bytes = value::ValueTreeNbytes(trees.inputs);
  info.output_bytes = value::ValueTreeNbytes(trees.outputs);
  return absl::OkStatus();
}

}  // namespace cipherd::engine
