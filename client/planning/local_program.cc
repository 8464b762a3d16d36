#include "client/planning/local_program.h"

#include <algorithm>
#include <complex>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/planned_range.h"
#include "client/slot_layout.h"
#include "core/base/status_macros.h"
#include "core/programs/placeholder_key.h"
#include "core/runtime/event.h"
#include "core/runtime/stream.h"
#include "core/secret/decryptor.h"
#include "core/secret/encryptor.h"
#include "core/secret/key_generator.h"
#include "core/value/tensor_copy.h"

namespace cipherd::client {
namespace {

// How many items a ciphertext of every input and output has room for.
int64_t ItemsAtOnce(const programs::ProgramSpec& spec) {
  int64_t count = INT64_MAX;
  for (const programs::ProgramInput& input : spec.inputs) {
    count = std::min(count, input.layout.item_count);
  }
  for (const programs::ProgramOutput& output : spec.outputs) {
    count = std::min(count, output.layout.item_count);
  }
  return count;
}

absl::StatusOr<size_t> ItemCountOf(const programs::ProgramSpec& spec, const NamedVectors& inputs) {
  for (const auto& [name, items] : inputs) {
    const bool known =
        std::any_of(spec.inputs.begin(), spec.inputs.end(),
                    [&name = name](const auto& input) { return input.name == name; });
    if (!known) {
      return absl::InvalidArgumentError(
          absl::StrCat("inputs: program '", spec.name, "' has no input '", name, "'"));
    }
  }
  size_t count = 0;
  for (const programs::ProgramInput& input : spec.inputs) {
    const auto items = inputs.find(input.name);
    if (items == inputs.end() || items->second.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("inputs['", input.name, "']: expected at least one vector, got none"));
    }
    if (count != 0 && items->second.size() != count) {
      return absl::InvalidArgumentError(absl::StrCat("inputs['", input.name, "']: expected ", count,
                                                     " vectors, as the inputs before it, got ",
                                                     items->second.size()));
    }
    count = items->second.size();
  }
  return count;
}

// For a median, however few samples there are.
constexpr size_t kLeastTimedReplays = 5;

}  // namespace

LocalProgram::LocalProgram(std::shared_ptr<const programs::CheckedProgram> program,
                           secret::Random random, std::unique_ptr<runtime::Stream> stream)
    : program_(std::move(program)),
      stream_(std::move(stream)),
      encoder_(program_->context),
      random_(std::move(random)),
      secret_key_(secret::SecretKey::Generate(program_->context, random_)) {}

LocalProgram::~LocalProgram() = default;

absl::StatusOr<std::unique_ptr<LocalProgram>> LocalProgram::Make(
    std::shared_ptr<const programs::CheckedProgram> program, runtime::Device& device) {
  CIPHERD_ASSIGN_OR_RETURN(secret::Random random, secret::Random::FromOsEntropy());
  CIPHERD_ASSIGN_OR_RETURN(std::unique_ptr<runtime::Stream> stream, device.CreateStream("local"));
  std::unique_ptr<LocalProgram> local(
      new LocalProgram(std::move(program), std::move(random), std::move(stream)));
  CIPHERD_RETURN_IF_ERROR(local->MakeKeys());
  CIPHERD_RETURN_IF_ERROR(local->Capture(device));
  return local;
}

absl::Status LocalProgram::MakeKeys() {
  CIPHERD_RETURN_IF_ERROR(
      secret::KeyGenerator(secret_key_)
          .GenerateKeys(program_->keys, random_,
                        [&](secret::GeneratedKey generated, int, int) -> absl::Status {
                          CIPHERD_ASSIGN_OR_RETURN(ckks::EvaluationKey key,
                                                   ckks::UploadKey(generated.key, *stream_));
                          CIPHERD_RETURN_IF_ERROR(stream_->Synchronize());
                          keys_.emplace(key.id, std::move(key));
                          return absl::OkStatus();
                        }));
  CIPHERD_ASSIGN_OR_RETURN(ckks::KeyTable table,
                           ckks::MakeKeyTable(program_->keys, keys_, *stream_));
  key_table_ = std::move(table.addresses);
  return absl::OkStatus();
}

absl::Status LocalProgram::Capture(runtime::Device& device) {
  CIPHERD_ASSIGN_OR_RETURN(begin_, device.CreateEvent());
  CIPHERD_ASSIGN_OR_RETURN(end_, device.CreateEvent());
  CIPHERD_ASSIGN_OR_RETURN(device_context_,
                           ckks::DeviceContext::Create(program_->context, device, *stream_));
  CIPHERD_ASSIGN_OR_RETURN(const std::shared_ptr<const programs::Interpreter> interpreter,
                           programs::Interpreter::Make(program_, *device_context_, *stream_));
  CIPHERD_ASSIGN_OR_RETURN(const std::shared_ptr<const programs::PlaceholderKey> placeholder,
                           programs::PlaceholderKey::Make(*device_context_, *stream_));
  CIPHERD_ASSIGN_OR_RETURN(execution::ProgramFunction function, interpreter->MakeFunction());
  CIPHERD_ASSIGN_OR_RETURN(std::vector<value::ValueTree> examples,
                           interpreter->ExampleInputs(*placeholder, *stream_));
  CIPHERD_ASSIGN_OR_RETURN(
      captured_, execution::CudaGraphProgram::Capture(std::move(function), std::move(examples)));
  return absl::OkStatus();
}

absl::StatusOr<value::ValueTree> LocalProgram::EncryptInput(const programs::ProgramInput& input,
                                                            const Vectors& items) {
  const ckks::ContextParameters& parameters = program_->spec.context;
  const programs::EdgeState& state = program_->edges.find(input.name)->second;
  CIPHERD_ASSIGN_OR_RETURN(const std::vector<double> slots,
                           PackSlots(input.layout, parameters.slot_count(), items,
                                     absl::StrCat("inputs['", input.name, "']")));
  CIPHERD_ASSIGN_OR_RETURN(const ckks::Plaintext message,
                           encoder_.Encode(slots, state.depth, state.scale));
  CIPHERD_ASSIGN_OR_RETURN(secret::SeededCiphertext seeded,
                           secret::SymmetricEncryptor(secret_key_).Encrypt(message, random_));
  CIPHERD_ASSIGN_OR_RETURN(seeded.ciphertext.data,
                           value::CopyToDevice(seeded.ciphertext.data, *stream_));
  return value::ValueTree::Value(seeded.ciphertext.ToValue(parameters, program_->context->id()));
}

absl::StatusOr<value::ValueTree> LocalProgram::Replay(const std::vector<value::ValueTree>& inputs) {
  CIPHERD_ASSIGN_OR_RETURN(const execution::CopyHandle copied,
                           captured_->CopyInputsFrom(inputs, {.stream = stream_.get()}));
  CIPHERD_RETURN_IF_ERROR(stream_->Record(*begin_));
  CIPHERD_ASSIGN_OR_RETURN(value::ValueTree results,
                           captured_->ReplayPrepared(*stream_, {.copy_handle = copied}));
  CIPHERD_RETURN_IF_ERROR(stream_->Record(*end_));
  CIPHERD_RETURN_IF_ERROR(stream_->Synchronize());
  CIPHERD_ASSIGN_OR_RETURN(const double seconds, end_->SecondsSince(*begin_));
  // The first one touches memory that nobody has used; a daemon's load does that.
  if (std::exchange(is_warm_, true)) replay_seconds_.push_back(seconds);
  return results;
}

absl::Status LocalProgram::EvaluateSome(const NamedVectors& inputs, size_t first, size_t last,
                                        NamedVectors& outputs) {
  const programs::ProgramSpec& spec = program_->spec;
  std::vector<value::ValueTree> trees;
  for (const programs::ProgramInput& input : spec.inputs) {
    const Vectors& items = inputs.find(input.name)->second;
    CIPHERD_ASSIGN_OR_RETURN(
        trees.emplace_back(),
        EncryptInput(input, Vectors(items.begin() + first, items.begin() + last)));
  }
  trees.push_back(value::ValueTree::Leaf(key_table_));
  CIPHERD_ASSIGN_OR_RETURN(value::ValueTree results, Replay(trees));
  while (replay_seconds_.size() < kLeastTimedReplays) {
    CIPHERD_ASSIGN_OR_RETURN(results, Replay(trees));
  }
  const secret::Decryptor decryptor(secret_key_);
  for (size_t i = 0; i < spec.outputs.size(); ++i) {
    const std::string path = absl::StrCat("outputs['", spec.outputs[i].name, "']");
    CIPHERD_ASSIGN_OR_RETURN(ckks::Ciphertext ciphertext,
                             ckks::Ciphertext::FromValue(results[i].exact_value(), path,
                                                         spec.context, program_->context->id()));
    CIPHERD_ASSIGN_OR_RETURN(ciphertext.data, value::CopyToHost(ciphertext.data, *stream_));
    CIPHERD_ASSIGN_OR_RETURN(const ckks::Plaintext message, decryptor.Decrypt(ciphertext));
    CIPHERD_ASSIGN_OR_RETURN(const std::vector<std::complex<double>> complex_slots,
                             encoder_.Decode(message));
    std::vector<double> slots;
    for (const std::complex<double>& slot : complex_slots) slots.push_back(slot.real());
    CIPHERD_ASSIGN_OR_RETURN(Vectors items, UnpackSlots(spec.outputs[i].layout, slots,
                                                        static_cast<int64_t>(last - first), path));
    CIPHERD_RETURN_IF_ERROR(
        CheckOutputRange(spec.outputs[i], items, path, static_cast<int64_t>(first)));
    Vectors& all = outputs[spec.outputs[i].name];
    std::move(items.begin(), items.end(), std::back_inserter(all));
  }
  return absl::OkStatus();
}

absl::StatusOr<NamedVectors> LocalProgram::Evaluate(const NamedVectors& inputs) {
  CIPHERD_ASSIGN_OR_RETURN(const size_t count, ItemCountOf(program_->spec, inputs));
  for (const programs::ProgramInput& input : program_->spec.inputs) {
    CIPHERD_RETURN_IF_ERROR(CheckInputRange(input, inputs.find(input.name)->second,
                                            absl::StrCat("inputs['", input.name, "']")));
  }
  const size_t step = static_cast<size_t>(ItemsAtOnce(program_->spec));
  NamedVectors outputs;
  for (size_t first = 0; first < count; first += step) {
    CIPHERD_RETURN_IF_ERROR(EvaluateSome(inputs, first, std::min(first + step, count), outputs));
  }
  return outputs;
}

double LocalProgram::replay_seconds() const {
  if (replay_seconds_.empty()) return 0;
  std::vector<double> sorted = replay_seconds_;
  std::sort(sorted.begin(), sorted.end());
  return sorted[sorted.size() / 2];
}

}  // namespace cipherd::client
