// A value as a NumPy array, as clients of the Open Inference Protocol keep it.
#include "client/files/tensor_files.h"
#include "core/execution/value_tree_signature.h"
#include "tests/codec/wire_values.h"
#include "tests/fuzz/memory_file.h"

namespace cipherd::fuzz {
namespace {

using value::ValueTree;

execution::ValueTreeSignature Expected() {
  return *execution::ValueTreeSignature::FromTree(
      ValueTree::Tuple({ValueTree::Value(testing::MakeCiphertext(*testing::SmallContext(), 1))}));
}

}  // namespace

bool Decode(std::string_view bytes) {
  static const auto& signature = *new execution::ValueTreeSignature(Expected());
  const MemoryFile file(bytes);
  const auto values =
      client::ReadTensorFiles({{"x", file.path()}}, {"x"}, signature, testing::SmallContext());
  if (!values.ok()) return Refused(values.status());
  Require(signature.Validate(*values).ok(), "values are those that were asked for");
  return true;
}

}  // namespace cipherd::fuzz
