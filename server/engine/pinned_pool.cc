#include "server/engine/pinned_pool.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace cipherd::engine {

absl::StatusOr<std::unique_ptr<PinnedPool>> PinnedPool::Create(const Program& program, int count,
                                                               runtime::Device& device) {
  const ProgramInfo& info = program.info();
  const TensorFactory allocate = [&device](value::DType dtype, std::vector<int64_t> shape) {
    return value::Tensor::AllocatePinned(device, dtype, std::move(shape));
  };
  std::vector<std::unique_ptr<EvaluationTrees>> trees;
  trees.reserve(count);
  const int64_t tree_bytes = info.input_bytes + info.output_bytes;
  for (int i = 0; i < count; ++i) {
    absl::StatusOr<EvaluationTrees> pair = program.MakeTrees(allocate);
    if (!pair.ok()) {
      return absl::Status(pair.status().code(),
                          absl::StrCat("pinned trees of program '", info.name, "', ", count,
                                       " times ", tree_bytes, " bytes: ", pair.status().message(),
                                       "; lower queue_capacity or raise the pinned budget"));
    }
    trees.push_back(std::make_unique<EvaluationTrees>(*std::move(pair)));
  }
  return std::unique_ptr<PinnedPool>(
      new PinnedPool(absl::StrCat("pinned trees of program '", info.name, "'"), std::move(trees),
                     tree_bytes * count));
}

}  // namespace cipherd::engine
