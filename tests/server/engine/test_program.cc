#include "tests/server/engine/test_program.h"

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/notification.h"
#include "core/base/sha256.h"
#include "core/base/status_macros.h"
#include "core/ckks/key_set_id.h"
#include "core/runtime/host/task_stream.h"

namespace cipherd::engine::testing {
namespace {

constexpr uint64_t kVersionOffset = 1'000'000'000'000;
constexpr uint64_t kOutputOffset = 1'000'000'000'000'000;
constexpr int64_t kKeyBytes = kWordCount * sizeof(uint64_t);

ckks::KeyLayout TwoKeys() {
  return ckks::KeyLayout({ckks::KeyId::Relinearization(), ckks::KeyId::Rotation(1, kWordCount)});
}

base::Sha256Digest HashOf(const std::vector<uint64_t>& words) {
  base::Sha256 hash;
  hash.Update(words.data(), words.size() * sizeof(uint64_t));
  return hash.Finish();
}

}  // namespace

TestProgram::TestProgram(std::string name, std::shared_ptr<Gate> gate, int64_t version,
                         int output_count)
    : output_count_(output_count), gate_(std::move(gate)) {
  info_.name = std::move(name);
  info_.version = version;
  info_.context_id = kContextId;
  info_.keys = TwoKeys();
  const absl::Status status = DescribeTrees(*this, info_);
  if (!status.ok()) std::abort();
}

absl::StatusOr<EvaluationTrees> TestProgram::MakeTrees(const TensorFactory& allocate) const {
  CIPHERD_ASSIGN_OR_RETURN(value::Tensor input, allocate(value::DType::kUint64, {kWordCount}));
  std::vector<value::ValueTree> outputs;
  for (int i = 0; i < output_count_; ++i) {
    CIPHERD_ASSIGN_OR_RETURN(value::Tensor output, allocate(value::DType::kUint64, {kWordCount}));
    outputs.push_back(value::ValueTree::Leaf(std::move(output)));
  }
  return EvaluationTrees{value::ValueTree::Tuple({value::ValueTree::Leaf(std::move(input))}),
                         value::ValueTree::Tuple(std::move(outputs))};
}

absl::StatusOr<ProgramBinding> TestProgram::Bind(runtime::Device& device, runtime::Stream& stream,
                                                 const ServingSettings& settings) const {
  CIPHERD_RETURN_IF_ERROR(bind_status_);
  ProgramBinding binding;
  CIPHERD_ASSIGN_OR_RETURN(value::Tensor input,
                           value::Tensor::AllocateOn(stream, value::DType::kUint64, {kWordCount}));
  CIPHERD_ASSIGN_OR_RETURN(value::Tensor table,
                           value::Tensor::AllocateOn(stream, value::DType::kUint64, {2}));
  CIPHERD_ASSIGN_OR_RETURN(value::Tensor key,
                           value::Tensor::AllocateOn(stream, value::DType::kUint64, {kWordCount}));
  const uint64_t addresses[2] = {reinterpret_cast<uint64_t>(key.data()),
                                 reinterpret_cast<uint64_t>(key.data())};
  CIPHERD_RETURN_IF_ERROR(stream.FillAsync(input.data(), 3, input.bytes()));
  CIPHERD_RETURN_IF_ERROR(stream.FillAsync(key.data(), 5, key.bytes()));
  CIPHERD_RETURN_IF_ERROR(stream.CopyAsync(table.data(), addresses, sizeof(addresses)));
  CIPHERD_RETURN_IF_ERROR(stream.Synchronize());
  binding.example_inputs = {value::ValueTree::Leaf(input), value::ValueTree::Leaf(table)};
  binding.example_keys = std::make_shared<value::Tensor>(std::move(key));
  binding.make_function = [gate = gate_, is_unsteady = is_unsteady_, version = info_.version,
                           output_count = output_count_,
                           runs = std::make_shared<std::atomic<uint64_t>>()](
                              execution::OutputEvents events) {
    return [=](std::span<const value::ValueTree> inputs,
               runtime::Stream& on) -> absl::StatusOr<value::ValueTree> {
      const uint64_t* words = inputs[0].tensor().data_as<uint64_t>();
      const uint64_t* const* keys = inputs[1].tensor().data_as<const uint64_t*>();
      auto& task_stream = dynamic_cast<runtime::host::TaskStream&>(on);
      std::vector<value::ValueTree> outputs;
      for (int output = 0; output < output_count; ++output) {
        CIPHERD_ASSIGN_OR_RETURN(
            value::Tensor sum, value::Tensor::AllocateOn(on, value::DType::kUint64, {kWordCount}));
        uint64_t* out = sum.data_as<uint64_t>();
        CIPHERD_RETURN_IF_ERROR(task_stream.Submit("sum", [=] {
          if (gate != nullptr) gate->Pass();
          const uint64_t offset = kVersionOffset * (version - 1) + kOutputOffset * output +
                                  (is_unsteady ? runs->fetch_add(1) : 0);
          for (int64_t i = 0; i < kWordCount; ++i) {
            out[i] = words[i] + keys[0][i] + keys[1][i] + offset;
          }
          return absl::OkStatus();
        }));
        if (!events.empty() && events[output] != nullptr) {
          CIPHERD_RETURN_IF_ERROR(on.RecordInLaunches(events[output]));
        }
        outputs.push_back(value::ValueTree::Leaf(std::move(sum)));
      }
      return value::ValueTree::Tuple(std::move(outputs));
    };
  };
  return binding;
}

std::vector<uint64_t> KeyWords(uint64_t tenant_seed, int key_index) {
  std::vector<uint64_t> words(kWordCount);
  for (int64_t i = 0; i < kWordCount; ++i) {
    words[i] = tenant_seed * 1'000'000 + key_index * 10'000 + i;
  }
  return words;
}

void CommitTestKeys(KeyStore& store, std::string_view tenant, const std::string& id,
                    uint64_t tenant_seed, KeyStore::CommitContinuation continuation) {
  absl::StatusOr<KeyUpload> upload = store.Reserve(tenant, 2 * kKeyBytes);
  if (!upload.ok()) return continuation(upload.status());
  KeyStore::NewSet set{.id = id, .context_id = kContextId};
  int index = 0;
  const ckks::KeyLayout layout = TwoKeys();
  for (const ckks::KeyId& key_id : layout.ids()) {
    absl::StatusOr<value::Tensor> data = upload->Allocate({kWordCount});
    if (!data.ok()) return continuation(data.status());
    const std::vector<uint64_t> words = KeyWords(tenant_seed, index++);
    std::copy(words.begin(), words.end(), data->data_as<uint64_t>());
    set.digests.emplace(key_id, HashOf(words));
    set.keys.emplace(key_id, ckks::EvaluationKey{key_id, *std::move(data)});
  }
  store.Commit(*std::move(upload), std::move(set), std::move(continuation));
}

absl::StatusOr<KeySetRef> PutTestKeys(KeyStore& store, std::string_view tenant,
                                      const std::string& id, uint64_t tenant_seed) {
  absl::Notification committed;
  absl::Status status;
  CommitTestKeys(store, tenant, id, tenant_seed, [&](const auto& result) {
    status = result.status();
    committed.Notify();
  });
  committed.WaitForNotification();
  CIPHERD_RETURN_IF_ERROR(status);
  return AwaitKeys(store, tenant, id);
}

absl::Status DropTestKeys(KeyStore& store, std::string_view tenant, const std::string& id) {
  absl::Notification dropped;
  absl::Status status;
  store.Drop(tenant, id, [&](const absl::Status& result) {
    status = result;
    dropped.Notify();
  });
  dropped.WaitForNotification();
  return status;
}

absl::StatusOr<KeySetRef> AwaitKeys(KeyStore& store, std::string_view tenant,
                                    const std::string& id) {
  absl::Notification resolved;
  absl::StatusOr<KeySetRef> keys;
  store.Acquire(tenant, id)->Await([&](const absl::StatusOr<KeySetRef>& result) {
    keys = result;
    resolved.Notify();
  });
  resolved.WaitForNotification();
  return keys;
}

std::string TrueKeySetId(uint64_t tenant_seed) {
  ckks::KeySetIdBuilder id(absl::HexStringToBytes(kContextId));
  int index = 0;
  const ckks::KeyLayout layout = TwoKeys();
  for (const ckks::KeyId& key_id : layout.ids()) {
    id.Add(key_id, HashOf(KeyWords(tenant_seed, index++)));
  }
  return base::ToHex(id.Finish());
}

std::string TestKeySetId(int number) { return absl::StrFormat("%064x", number); }

uint64_t ExpectedWord(uint64_t input, uint64_t tenant_seed, int64_t index, int64_t version) {
  return kVersionOffset * (version - 1) + input + index + KeyWords(tenant_seed, 0)[index] +
         KeyWords(tenant_seed, 1)[index];
}

void FillInputs(const value::ValueTree& inputs, uint64_t value) {
  uint64_t* words = inputs[0].tensor().data_as<uint64_t>();
  for (int64_t i = 0; i < kWordCount; ++i) words[i] = value + i;
}

bool OutputMatches(const value::ValueTree& outputs, size_t output, uint64_t value,
                   uint64_t tenant_seed, int64_t version) {
  const uint64_t* words = outputs[output].tensor().data_as<uint64_t>();
  for (int64_t i = 0; i < kWordCount; ++i) {
    const uint64_t expected = ExpectedWord(value, tenant_seed, i, version) + kOutputOffset * output;
    if (words[i] != expected) return false;
  }
  return true;
}

bool OutputsMatch(const value::ValueTree& outputs, uint64_t value, uint64_t tenant_seed,
                  int64_t version) {
  for (size_t output = 0; output < outputs.children().size(); ++output) {
    if (!OutputMatches(outputs, output, value, tenant_seed, version)) return false;
  }
  return true;
}

}  // namespace cipherd::engine::testing
