#include "server/engine/program_instance.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/value/tensor_copy.h"

namespace cipherd::engine {
namespace {

absl::Status CheckSignatures(const ProgramInfo& info, const ProgramBinding& binding,
                             const execution::CudaGraphProgram& graph) {
  const std::vector<value::ValueTree> inputs(binding.example_inputs.begin(),
                                             binding.example_inputs.end() - 1);
  CIPHERD_RETURN_IF_ERROR(info.input_signature.Validate(value::ValueTree::Tuple(inputs), "inputs"));
  CIPHERD_ASSIGN_OR_RETURN(const value::ValueTree output, graph.output());
  return info.output_signature.Validate(output, "outputs");
}

// Whether two host trees of one structure hold the same bytes.
bool HoldSameBytes(const value::ValueTree& a, const value::ValueTree& b) {
  const auto same = [](const value::Tensor* x, const value::Tensor* y) {
    return x->bytes() == y->bytes() &&
           (x->bytes() == 0 ||
            std::memcmp(x->data(), y->data(), static_cast<size_t>(x->bytes())) == 0);
  };
  return std::ranges::equal(value::TensorsOf(a), value::TensorsOf(b), same);
}

// One replay and one eager run over the example, compared on the host.
absl::Status VerifyReplay(const Program& program, const ProgramBinding& binding,
                          execution::CudaGraphProgram& graph, runtime::Stream& stream) {
  CIPHERD_ASSIGN_OR_RETURN(const value::ValueTree replayed,
                           graph.Replay(binding.example_inputs, stream));
  CIPHERD_ASSIGN_OR_RETURN(const EvaluationTrees from_replay,
                           program.MakeTrees(&value::Tensor::AllocateHost));
  CIPHERD_RETURN_IF_ERROR(value::CopyTreeAsync(replayed, from_replay.outputs, stream));
  CIPHERD_ASSIGN_OR_RETURN(const value::ValueTree eager,
                           binding.function(binding.example_inputs, stream));
  CIPHERD_ASSIGN_OR_RETURN(const EvaluationTrees from_eager,
                           program.MakeTrees(&value::Tensor::AllocateHost));
  CIPHERD_RETURN_IF_ERROR(value::CopyTreeAsync(eager, from_eager.outputs, stream));
  CIPHERD_RETURN_IF_ERROR(stream.Synchronize());
  if (!HoldSameBytes(from_replay.outputs, from_eager.outputs)) {
    return absl::InternalError("the first replay differs from an eager run");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ProgramInstance>> ProgramInstance::Build(
    const Program& program, const ProgramBinding& binding, runtime::Device& device,
    runtime::Stream& stream, int warmup) {
  const ProgramInfo& info = program.info();
  std::unique_ptr<ProgramInstance> instance(new ProgramInstance);
  instance->keys_ = info.keys;
  execution::CaptureOptions options;
  options.warmup = warmup;
  options.function_name = info.name;
  CIPHERD_ASSIGN_OR_RETURN(
      instance->graph_,
      execution::CudaGraphProgram::Capture(binding.function, binding.example_inputs, options));
  CIPHERD_RETURN_IF_ERROR(CheckSignatures(info, binding, *instance->graph_));
  CIPHERD_RETURN_IF_ERROR(VerifyReplay(program, binding, *instance->graph_, stream));

  CIPHERD_ASSIGN_OR_RETURN(instance->key_table_,
                           value::Tensor::AllocatePinned(device, value::DType::kUint64,
                                                         {std::max<int64_t>(1, info.keys.size())}));
  for (std::shared_ptr<runtime::Event>& event : instance->events_) {
    CIPHERD_ASSIGN_OR_RETURN(event, device.CreateEvent());
  }
  return instance;
}

absl::Status ProgramInstance::BindKeys(const ckks::KeySet& device_keys) {
  CIPHERD_ASSIGN_OR_RETURN(const std::vector<uint64_t> addresses,
                           ckks::KeyAddresses(keys_, device_keys));
  std::copy(addresses.begin(), addresses.end(), key_table_.data_as<uint64_t>());
  return absl::OkStatus();
}

std::vector<value::ValueTree> ProgramInstance::Arguments(const value::ValueTree& inputs) const {
  std::vector<value::ValueTree> arguments;
  arguments.reserve(inputs.children().size() + 1);
  arguments = inputs.children();
  arguments.push_back(value::ValueTree::Leaf(key_table_));
  return arguments;
}

}  // namespace cipherd::engine
