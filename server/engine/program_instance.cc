#include "server/engine/program_instance.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/value/tensor_copy.h"
#include "server/engine/batch_function.h"

namespace cipherd::engine {
namespace {

// The example of every item: trees of their own, since no two inputs of a graph share storage, and
// one table.
absl::StatusOr<std::vector<value::ValueTree>> BatchExample(const ProgramBinding& binding,
                                                           int batch_size,
                                                           runtime::Stream& stream) {
  const std::span<const value::ValueTree> values =
      std::span(binding.example_inputs).first(binding.example_inputs.size() - 1);
  const value::Tensor& row = binding.example_inputs.back().tensor();
  std::vector<value::ValueTree> example(values.begin(), values.end());
  CIPHERD_ASSIGN_OR_RETURN(
      value::Tensor table,
      value::Tensor::AllocateOn(stream, row.dtype(), {batch_size, row.element_count()}));
  for (int item = 0; item < batch_size; ++item) {
    CIPHERD_RETURN_IF_ERROR(stream.CopyAsync(table.data_as<uint8_t>() + item * row.bytes(),
                                             row.data(), static_cast<size_t>(row.bytes())));
    if (item == 0) continue;
    for (const value::ValueTree& value : values) {
      CIPHERD_ASSIGN_OR_RETURN(
          value::ValueTree clone,
          value::MapTensors(value, "example",
                            [&](const std::string&,
                                const value::Tensor& tensor) -> absl::StatusOr<value::Tensor> {
                              CIPHERD_ASSIGN_OR_RETURN(value::Tensor copy,
                                                       value::DeviceTensorLike(tensor, stream));
                              CIPHERD_RETURN_IF_ERROR(value::CopyTensorAsync(tensor, copy, stream));
                              return copy;
                            }));
      example.push_back(std::move(clone));
    }
  }
  example.push_back(value::ValueTree::Leaf(std::move(table)));
  // The capture reads it on a stream of its own.
  CIPHERD_RETURN_IF_ERROR(stream.Synchronize());
  return example;
}

absl::Status CheckSignatures(const ProgramInfo& info, const ProgramBinding& binding,
                             const execution::CudaGraphProgram& graph) {
  const std::vector<value::ValueTree> inputs(binding.example_inputs.begin(),
                                             binding.example_inputs.end() - 1);
  CIPHERD_RETURN_IF_ERROR(info.input_signature.Validate(value::ValueTree::Tuple(inputs), "inputs"));
  CIPHERD_ASSIGN_OR_RETURN(const value::ValueTree outputs, graph.output());
  for (const value::ValueTree& output : outputs.children()) {
    CIPHERD_RETURN_IF_ERROR(info.output_signature.Validate(output, "outputs"));
  }
  return absl::OkStatus();
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

// An event for each of `count` outputs of each item.
absl::StatusOr<std::vector<execution::OutputEvents>> MakeOutputEvents(int batch_size, size_t count,
                                                                      runtime::Device& device) {
  std::vector<execution::OutputEvents> events(batch_size);
  for (execution::OutputEvents& of_item : events) {
    for (size_t output = 0; output < count; ++output) {
      CIPHERD_ASSIGN_OR_RETURN(of_item.emplace_back(), device.CreateEvent());
    }
  }
  return events;
}

// One replay of the batch and one eager run of a single evaluation, compared on the host.
absl::Status VerifyReplay(const Program& program, const ProgramBinding& binding,
                          std::span<const value::ValueTree> example,
                          execution::CudaGraphProgram& graph, runtime::Stream& stream) {
  const auto download = [&](const value::ValueTree& outputs) -> absl::StatusOr<value::ValueTree> {
    CIPHERD_ASSIGN_OR_RETURN(const EvaluationTrees host,
                             program.MakeTrees(&value::Tensor::AllocateHost));
    CIPHERD_RETURN_IF_ERROR(value::CopyTreeAsync(outputs, host.outputs, stream));
    CIPHERD_RETURN_IF_ERROR(stream.Synchronize());
    return host.outputs;
  };
  CIPHERD_ASSIGN_OR_RETURN(const execution::ProgramFunction function,
                           binding.make_function(/*output_events=*/{}));
  CIPHERD_ASSIGN_OR_RETURN(const value::ValueTree on_device,
                           function(binding.example_inputs, stream));
  CIPHERD_ASSIGN_OR_RETURN(const value::ValueTree eager, download(on_device));
  CIPHERD_ASSIGN_OR_RETURN(const value::ValueTree replayed, graph.Replay(example, stream));
  for (const value::ValueTree& item : replayed.children()) {
    CIPHERD_ASSIGN_OR_RETURN(const value::ValueTree from_replay, download(item));
    if (!HoldSameBytes(from_replay, eager)) {
      return absl::InternalError("the first replay differs from an eager run");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ProgramInstance>> ProgramInstance::Build(
    const Program& program, const ProgramBinding& binding, int batch_size, int warmup,
    runtime::Device& device, runtime::Stream& stream) {
  const ProgramInfo& info = program.info();
  std::unique_ptr<ProgramInstance> instance(new ProgramInstance);
  instance->batch_size_ = batch_size;
  instance->keys_ = info.keys;
  execution::CaptureOptions options;
  options.warmup = warmup;
  options.function_name = batch_size == 1 ? info.name : absl::StrCat(info.name, " x", batch_size);
  if (const size_t early_count = info.output_count() - 1; early_count > 0) {
    CIPHERD_ASSIGN_OR_RETURN(instance->output_computed_,
                             MakeOutputEvents(batch_size, early_count, device));
    CIPHERD_ASSIGN_OR_RETURN(instance->early_output_copied_,
                             MakeOutputEvents(batch_size, early_count, device));
    // The end of the replay tells of the last one.
    for (execution::OutputEvents& events : instance->output_computed_) events.push_back(nullptr);
  }
  CIPHERD_ASSIGN_OR_RETURN(
      execution::ProgramFunction function,
      MakeBatchFunction(binding.make_function, batch_size, device, instance->output_computed_));
  CIPHERD_ASSIGN_OR_RETURN(const std::vector<value::ValueTree> example,
                           BatchExample(binding, batch_size, stream));
  CIPHERD_ASSIGN_OR_RETURN(instance->graph_, execution::CudaGraphProgram::Capture(
                                                 std::move(function), example, options));
  CIPHERD_RETURN_IF_ERROR(CheckSignatures(info, binding, *instance->graph_));
  CIPHERD_RETURN_IF_ERROR(VerifyReplay(program, binding, example, *instance->graph_, stream));

  CIPHERD_ASSIGN_OR_RETURN(
      instance->key_table_,
      value::Tensor::AllocatePinned(device, value::DType::kUint64,
                                    {batch_size, std::max<int64_t>(1, info.keys.size())}));
  for (std::shared_ptr<runtime::Event>& event : instance->events_) {
    CIPHERD_ASSIGN_OR_RETURN(event, device.CreateEvent());
  }
  return instance;
}

absl::Status ProgramInstance::BindKeys(int item, const ckks::KeySet& device_keys) {
  CIPHERD_ASSIGN_OR_RETURN(const std::vector<uint64_t> addresses,
                           ckks::KeyAddresses(keys_, device_keys));
  uint64_t* const row = key_table_.data_as<uint64_t>() + item * key_table_.shape().back();
  std::copy(addresses.begin(), addresses.end(), row);
  return absl::OkStatus();
}

std::vector<value::ValueTree> ProgramInstance::Arguments(
    std::span<const value::ValueTree* const> inputs) const {
  std::vector<value::ValueTree> arguments;
  arguments.reserve(inputs.size() * inputs.front()->children().size() + 1);
  for (const value::ValueTree* tree : inputs) {
    arguments.insert(arguments.end(), tree->children().begin(), tree->children().end());
  }
  arguments.push_back(value::ValueTree::Leaf(key_table_));
  return arguments;
}

}  // namespace cipherd::engine
