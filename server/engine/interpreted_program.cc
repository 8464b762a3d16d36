#include "server/engine/interpreted_program.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/base/status_macros.h"
#include "core/ckks/ciphertext.h"
#include "core/ckks/device_context.h"
#include "core/programs/interpreter.h"
#include "core/programs/placeholder_key.h"

namespace cipherd::engine {
namespace {

// SplitMix64: an even spread is all that is asked of it.
class ResidueSequence {
 public:
  explicit ResidueSequence(uint64_t seed) : state_(seed) {}

  // In [0, q).
  uint64_t Next(uint64_t q) {
    state_ += 0x9E3779B97F4A7C15;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return (z ^ (z >> 31)) % q;
  }

 private:
  uint64_t state_;
};

// Writes rows of residues, the i-th below the prime prime_ids[i mod size], over `bytes` bytes of
// device memory. Blocks.
absl::Status FillWithResidues(void* target, int64_t bytes, const std::vector<int64_t>& prime_ids,
                              const ckks::Context& context, uint64_t seed,
                              runtime::Stream& stream) {
  const int64_t degree = context.parameters().ring_degree();
  const int64_t row_count = bytes / (degree * static_cast<int64_t>(sizeof(uint64_t)));
  ResidueSequence residues(seed);
  std::vector<uint64_t> words;
  words.reserve(row_count * degree);
  for (int64_t row = 0; row < row_count; ++row) {
    const uint64_t q = context.prime(prime_ids[row % prime_ids.size()]);
    for (int64_t i = 0; i < degree; ++i) words.push_back(residues.Next(q));
  }
  CIPHERD_RETURN_IF_ERROR(stream.CopyAsync(target, words.data(), static_cast<size_t>(bytes)));
  return stream.Synchronize();
}

absl::StatusOr<value::ValueTree> MakeCiphertext(const programs::CheckedProgram& program,
                                                std::string_view edge,
                                                const TensorFactory& allocate) {
  const ckks::ContextParameters& parameters = program.context->parameters();
  const programs::EdgeState& state = program.edges.find(edge)->second;
  ckks::Ciphertext ciphertext;
  CIPHERD_ASSIGN_OR_RETURN(ciphertext.data,
                           allocate(value::DType::kUint64,
                                    {state.component_count, parameters.active_q_count(state.depth),
                                     parameters.ring_degree()}));
  ciphertext.depth = state.depth;
  ciphertext.scale = state.scale;
  return value::ValueTree::Value(ciphertext.ToValue(parameters, program.context->id()));
}

}  // namespace

absl::StatusOr<std::shared_ptr<const InterpretedProgram>> InterpretedProgram::Create(
    std::shared_ptr<const programs::CheckedProgram> checked) {
  std::shared_ptr<InterpretedProgram> program(new InterpretedProgram(std::move(checked)));
  const programs::ProgramSpec& spec = program->checked_->spec;
  ProgramInfo& info = program->info_;
  info.name = spec.name;
  info.version = spec.version;
  info.description = spec.description;
  info.context_id = program->checked_->context->id();
  info.keys = program->checked_->keys;
  info.key_bytes = static_cast<int64_t>(program->checked_->key_bytes());
  CIPHERD_RETURN_IF_ERROR(DescribeTrees(*program, info));
  return program;
}

absl::StatusOr<EvaluationTrees> InterpretedProgram::MakeTrees(const TensorFactory& allocate) const {
  std::vector<value::ValueTree> inputs;
  for (const programs::ProgramInput& input : checked_->spec.inputs) {
    CIPHERD_ASSIGN_OR_RETURN(value::ValueTree tree,
                             MakeCiphertext(*checked_, input.name, allocate));
    inputs.push_back(std::move(tree));
  }
  std::vector<value::ValueTree> outputs;
  for (const programs::ProgramOutput& output : checked_->spec.outputs) {
    CIPHERD_ASSIGN_OR_RETURN(value::ValueTree tree,
                             MakeCiphertext(*checked_, output.edge, allocate));
    outputs.push_back(std::move(tree));
  }
  return EvaluationTrees{value::ValueTree::Tuple(std::move(inputs)),
                         value::ValueTree::Tuple(std::move(outputs))};
}

absl::StatusOr<ProgramBinding> InterpretedProgram::Bind(runtime::Device& device,
                                                        runtime::Stream& stream,
                                                        const ServingSettings& settings) const {
  const ckks::Context& context = *checked_->context;
  const ckks::ContextParameters& parameters = context.parameters();
  CIPHERD_ASSIGN_OR_RETURN(std::shared_ptr<const ckks::DeviceContext> device_context,
                           ckks::DeviceContext::Create(checked_->context, device, stream));
  CIPHERD_ASSIGN_OR_RETURN(
      std::shared_ptr<const programs::Interpreter> interpreter,
      programs::Interpreter::Make(checked_, *device_context, stream,
                                  {.constant_budget_bytes = settings.constant_memory_bytes}));

  ProgramBinding binding;
  // One key stands for all of them.
  CIPHERD_ASSIGN_OR_RETURN(const std::shared_ptr<const programs::PlaceholderKey> key,
                           programs::PlaceholderKey::Make(*device_context, stream));
  CIPHERD_RETURN_IF_ERROR(FillWithResidues(reinterpret_cast<void*>(key->address()), key->bytes(),
                                           parameters.ActivePrimeIds(0, /*with_p=*/true), context,
                                           /*seed=*/1, stream));
  CIPHERD_ASSIGN_OR_RETURN(binding.example_inputs, interpreter->ExampleInputs(*key, stream));
  for (size_t i = 0; i + 1 < binding.example_inputs.size(); ++i) {
    const value::ExactValue& input = binding.example_inputs[i].exact_value();
    const value::Tensor& data = *input.FindTensor("data");
    CIPHERD_RETURN_IF_ERROR(FillWithResidues(data.data(), data.bytes(), *input.metadata.prime_ids,
                                             context, /*seed=*/2 + i, stream));
  }
  binding.example_keys = key;
  binding.make_function =
      [device_context, interpreter](
          execution::OutputEvents output_events) -> absl::StatusOr<execution::ProgramFunction> {
    CIPHERD_ASSIGN_OR_RETURN(execution::ProgramFunction function,
                             interpreter->MakeFunction(std::move(output_events)));
    // Which the interpreter refers to.
    return [device_context, function = std::move(function)](
               std::span<const value::ValueTree> inputs, runtime::Stream& on) {
      return function(inputs, on);
    };
  };
  return binding;
}

}  // namespace cipherd::engine
