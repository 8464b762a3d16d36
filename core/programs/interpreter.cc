#include "core/programs/interpreter.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/refusal.h"
#include "core/base/status_macros.h"
#include "core/ckks/ciphertext.h"
#include "core/ckks/encoder.h"
#include "core/ckks/evaluator.h"
#include "core/programs/encoded_constants.h"
#include "core/programs/schedule.h"
#include "core/programs/tiled_constants.h"

namespace cipherd::programs {
namespace {

using base::Refuse;

using ckks::Ciphertext;

EdgeState StateOf(const Ciphertext& ciphertext) {
  return {.depth = ciphertext.depth,
          .scale = ciphertext.scale,
          .component_count = ciphertext.component_count()};
}

std::string StateText(const EdgeState& state) {
  return absl::StrCat(state.component_count, " components of scale ",
                      internal::ScaleText(state.scale), " at depth ", state.depth);
}

}  // namespace

struct Interpreter::State {
  std::shared_ptr<const CheckedProgram> program;
  const ckks::DeviceContext& device_context;
  ckks::Evaluator evaluator;
  internal::Schedule schedule;
  internal::ResidentConstants resident;
  // Null where constants are resident.
  std::unique_ptr<const internal::TiledConstants> tiles;

  int64_t key_table_length() const { return std::max(1, program->keys.size()); }

  absl::StatusOr<Ciphertext> Input(size_t index, const value::ValueTree& tree) const;
  absl::StatusOr<ckks::KeyTable> Keys(const value::ValueTree& tree) const;
  // `copies` where constants come in tiles.
  absl::StatusOr<value::ValueTree> Evaluate(std::span<const value::ValueTree> inputs,
                                            internal::TileCopies* copies,
                                            const execution::OutputEvents& output_events,
                                            runtime::Stream& stream) const;
  // Edge `edge` has been computed.
  absl::Status RecordOutputs(int edge, const execution::OutputEvents& output_events,
                             runtime::Stream& stream) const;
  // `constants` of operations that read them.
  absl::StatusOr<Ciphertext> Run(const Operation& operation, const Ciphertext& a,
                                 const Ciphertext* b, const internal::OperationConstants* constants,
                                 const ckks::KeyTable& keys, runtime::Stream& stream) const;
  // The same with constants from where they are; `feed` where they come in tiles.
  absl::StatusOr<Ciphertext> RunWithConstants(const Operation& operation, const Ciphertext& a,
                                              const Ciphertext* b,
                                              std::optional<internal::ConstantFeed>& feed,
                                              const ckks::KeyTable& keys,
                                              runtime::Stream& stream) const;
};

Interpreter::Interpreter(std::unique_ptr<const State> state) : state_(std::move(state)) {}
Interpreter::~Interpreter() = default;

absl::StatusOr<std::shared_ptr<const Interpreter>> Interpreter::Make(
    std::shared_ptr<const CheckedProgram> program, const ckks::DeviceContext& device_context,
    runtime::Stream& stream, const InterpreterOptions& options) {
  if (device_context.context().id() != program->context->id()) {
    return Refuse("device_context: expected context ", program->context->id(), " of program '",
                  program->spec.name, "', got ", device_context.context().id());
  }
  if (&stream.device() != &device_context.device()) {
    return Refuse("stream: expected one of the device of device_context");
  }
  const ckks::Encoder encoder(program->context);
  internal::ResidentConstants resident;
  std::unique_ptr<const internal::TiledConstants> tiles;
  if (program->constant_bytes() <= options.constant_budget_bytes) {
    CIPHERD_ASSIGN_OR_RETURN(resident, internal::UploadConstants(*program, encoder, stream));
  } else {
    CIPHERD_ASSIGN_OR_RETURN(tiles, internal::TiledConstants::Make(*program, encoder, stream,
                                                                   options.constant_budget_bytes));
  }
  internal::Schedule schedule = internal::MakeSchedule(program->spec);
  return std::shared_ptr<const Interpreter>(new Interpreter(std::unique_ptr<const State>(
      new State{std::move(program), device_context, ckks::Evaluator(device_context),
                std::move(schedule), std::move(resident), std::move(tiles)})));
}

const CheckedProgram& Interpreter::program() const { return *state_->program; }

int64_t Interpreter::constant_bytes() const { return state_->resident.bytes; }

int64_t Interpreter::tile_count() const {
  return state_->tiles == nullptr ? 0 : state_->tiles->tile_count();
}

int64_t Interpreter::tile_bytes() const {
  return state_->tiles == nullptr ? 0 : state_->tiles->tile_bytes();
}

absl::StatusOr<Ciphertext> Interpreter::State::Input(size_t index,
                                                     const value::ValueTree& tree) const {
  const ProgramInput& input = program->spec.inputs[index];
  const std::string path = absl::StrCat("inputs[", index, "] ('", input.name, "')");
  if (tree.kind() != value::TreeKind::kValue) {
    return Refuse(path, ": expected a ciphertext, got a ",
                  std::string(value::ToString(tree.kind())));
  }
  CIPHERD_ASSIGN_OR_RETURN(Ciphertext ciphertext,
                           Ciphertext::FromValue(tree.exact_value(), path, program->spec.context,
                                                 program->context->id()));
  const EdgeState& expected = program->edges.find(input.name)->second;
  if (StateOf(ciphertext) != expected) {
    return Refuse(path, ": expected ", StateText(expected), ", got ",
                  StateText(StateOf(ciphertext)));
  }
  if (ciphertext.domain != value::PolynomialDomain::kNtt) {
    return Refuse(path, ".domain: expected ntt, got ",
                  std::string(value::ToString(ciphertext.domain)));
  }
  return ciphertext;
}

absl::StatusOr<ckks::KeyTable> Interpreter::State::Keys(const value::ValueTree& tree) const {
  if (tree.kind() != value::TreeKind::kTensor || tree.tensor().dtype() != value::DType::kUint64 ||
      tree.tensor().shape() != std::vector<int64_t>{key_table_length()} ||
      !tree.tensor().is_contiguous()) {
    return Refuse("key table: expected a contiguous uint64 tensor [", key_table_length(), "]");
  }
  return ckks::KeyTable{program->keys, tree.tensor()};
}

absl::StatusOr<Ciphertext> Interpreter::State::RunWithConstants(
    const Operation& operation, const Ciphertext& a, const Ciphertext* b,
    std::optional<internal::ConstantFeed>& feed, const ckks::KeyTable& keys,
    runtime::Stream& stream) const {
  if (!internal::ReadsConstant(operation.kind)) {
    return Run(operation, a, b, /*constants=*/nullptr, keys, stream);
  }
  if (!feed) {
    return Run(operation, a, b, &resident.by_operation.find(operation.name)->second, keys, stream);
  }
  CIPHERD_ASSIGN_OR_RETURN(const internal::OperationConstants* constants,
                           feed->Enter(operation.name));
  absl::StatusOr<Ciphertext> result = Run(operation, a, b, constants, keys, stream);
  CIPHERD_RETURN_IF_ERROR(feed->Leave(operation.name));
  return result;
}

absl::StatusOr<Ciphertext> Interpreter::State::Run(const Operation& operation, const Ciphertext& a,
                                                   const Ciphertext* b,
                                                   const internal::OperationConstants* constants,
                                                   const ckks::KeyTable& keys,
                                                   runtime::Stream& stream) const {
  const auto slots = [&]() -> const ckks::Plaintext& { return constants->at(0); };
  switch (operation.kind) {
    case OperationKind::kAdd:
      return evaluator.Add(a, *b, stream);
    case OperationKind::kSubtract:
      return evaluator.Subtract(a, *b, stream);
    case OperationKind::kNegate:
      return evaluator.Negate(a, stream);
    case OperationKind::kAddPlain:
      return evaluator.AddPlain(a, slots(), stream);
    case OperationKind::kSubtractPlain:
      return evaluator.SubtractPlain(a, slots(), stream);
    case OperationKind::kMultiply:
      return evaluator.Multiply(a, *b, stream);
    case OperationKind::kSquare:
      return evaluator.Square(a, stream);
    case OperationKind::kMultiplyPlain:
      return evaluator.MultiplyPlain(a, slots(), stream);
    case OperationKind::kRelinearize:
      return evaluator.Relinearize(a, keys, stream);
    case OperationKind::kRescale:
      return evaluator.Rescale(a, stream);
    case OperationKind::kDropToDepth:
      return evaluator.DropToDepth(a, operation.depth, stream);
    case OperationKind::kRotate:
      return evaluator.Rotate(a, operation.step, keys, stream);
    case OperationKind::kConjugate:
      return evaluator.Conjugate(a, keys, stream);
    case OperationKind::kLinearTransform:
      return ckks::ApplyLinearTransform(evaluator, program->plans.find(operation.name)->second,
                                        *constants, a, keys, stream);
  }
  return absl::InternalError("unknown kind of operation");
}

absl::StatusOr<execution::ProgramFunction> Interpreter::MakeFunction(
    execution::OutputEvents output_events) const {
  const size_t output_count = state_->schedule.outputs.size();
  if (!output_events.empty() && output_events.size() != output_count) {
    return Refuse("output_events: expected none or ", output_count, ", got ", output_events.size());
  }
  // Null where constants are resident.
  std::shared_ptr<internal::TileCopies> copies;
  if (state_->tiles != nullptr) {
    CIPHERD_ASSIGN_OR_RETURN(internal::TileCopies made,
                             internal::TileCopies::Make(state_->device_context.device()));
    copies = std::make_shared<internal::TileCopies>(std::move(made));
  }
  return [self = shared_from_this(), copies = std::move(copies),
          output_events = std::move(output_events)](std::span<const value::ValueTree> inputs,
                                                    runtime::Stream& stream) {
    return self->state_->Evaluate(inputs, copies.get(), output_events, stream);
  };
}

absl::Status Interpreter::State::RecordOutputs(int edge,
                                               const execution::OutputEvents& output_events,
                                               runtime::Stream& stream) const {
  for (size_t i = 0; i < output_events.size(); ++i) {
    if (schedule.outputs[i] != edge || output_events[i] == nullptr) continue;
    CIPHERD_RETURN_IF_ERROR(stream.RecordInLaunches(output_events[i]));
  }
  return absl::OkStatus();
}

absl::StatusOr<value::ValueTree> Interpreter::State::Evaluate(
    std::span<const value::ValueTree> inputs, internal::TileCopies* copies,
    const execution::OutputEvents& output_events, runtime::Stream& stream) const {
  const size_t input_count = program->spec.inputs.size();
  if (inputs.size() != input_count + 1) {
    return Refuse("inputs: expected ", input_count, " ciphertexts and a key table, got ",
                  inputs.size(), " values");
  }
  std::vector<std::optional<Ciphertext>> edges(schedule.edge_count);
  for (size_t i = 0; i < input_count; ++i) {
    CIPHERD_ASSIGN_OR_RETURN(edges[i], Input(i, inputs[i]));
  }
  CIPHERD_ASSIGN_OR_RETURN(const ckks::KeyTable keys, Keys(inputs[input_count]));

  std::optional<internal::ConstantFeed> feed;
  if (copies != nullptr) {
    CIPHERD_ASSIGN_OR_RETURN(feed, internal::ConstantFeed::Begin(*tiles, *copies, stream));
  }
  for (const internal::ScheduledOperation& step : schedule.operations) {
    const Operation& operation = *step.operation;
    absl::StatusOr<Ciphertext> result = RunWithConstants(
        operation, *edges[step.a], step.b < 0 ? nullptr : &*edges[step.b], feed, keys, stream);
    if (!result.ok()) {
      return absl::Status(result.status().code(),
                          absl::StrCat("operation '", operation.name,
                                       "': ", std::string(result.status().message())));
    }
    // What the checker promised to clients.
    const EdgeState& expected = program->edges.find(operation.name)->second;
    // Checked: but for rounding it has it.
    if (operation.result_scale != 0) result->scale = operation.result_scale;
    if (StateOf(*result) != expected) {
      return absl::InternalError(absl::StrCat("operation '", operation.name, "': expected ",
                                              StateText(expected), ", got ",
                                              StateText(StateOf(*result))));
    }
    edges[step.result] = *std::move(result);
    CIPHERD_RETURN_IF_ERROR(RecordOutputs(step.result, output_events, stream));
    for (const int edge : step.last_reads) edges[edge].reset();
  }

  std::vector<value::ValueTree> outputs;
  for (const int edge : schedule.outputs) {
    outputs.push_back(value::ValueTree::Value(
        edges[edge]->ToValue(program->spec.context, program->context->id())));
  }
  return value::ValueTree::Tuple(std::move(outputs));
}

absl::StatusOr<std::vector<value::ValueTree>> Interpreter::ExampleInputs(
    const PlaceholderKey& placeholder, runtime::Stream& stream) const {
  const CheckedProgram& program = *state_->program;
  const ckks::ContextParameters& parameters = program.spec.context;
  if (placeholder.context_id() != program.context->id() ||
      &placeholder.device() != &state_->device_context.device()) {
    return Refuse("placeholder: expected one of the program's context and device");
  }
  std::vector<value::ValueTree> inputs;
  for (const ProgramInput& input : program.spec.inputs) {
    const EdgeState& state = program.edges.find(input.name)->second;
    Ciphertext zero;
    zero.depth = state.depth;
    zero.scale = state.scale;
    CIPHERD_ASSIGN_OR_RETURN(
        zero.data,
        value::Tensor::AllocateOn(stream, value::DType::kUint64,
                                  {state.component_count, parameters.active_q_count(state.depth),
                                   parameters.ring_degree()}));
    CIPHERD_RETURN_IF_ERROR(stream.FillAsync(zero.data.data(), 0, zero.data.bytes()));
    inputs.push_back(value::ValueTree::Value(zero.ToValue(parameters, program.context->id())));
  }
  const std::vector<uint64_t> addresses(state_->key_table_length(), placeholder.address());
  CIPHERD_ASSIGN_OR_RETURN(
      value::Tensor table,
      value::Tensor::AllocateOn(stream, value::DType::kUint64, {state_->key_table_length()}));
  CIPHERD_RETURN_IF_ERROR(stream.CopyAsync(table.data(), addresses.data(), table.bytes()));
  CIPHERD_RETURN_IF_ERROR(stream.Synchronize());
  inputs.push_back(value::ValueTree::Leaf(std::move(table)));
  return inputs;
}

}  // namespace cipherd::programs
