#include "tests/bench/engine_workload.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "core/execution/cuda_graph_program.h"
#include "core/value/tensor_copy.h"

namespace cipherd::bench {
namespace {

using engine::EvaluationTrees;
using engine::RequestState;
using value::ValueTree;

// Rows of residues, the i-th below the prime prime_ids[i mod size]. SplitMix64: an even spread is
// all that is asked of it.
void FillWithResidues(const value::Tensor& tensor, const std::vector<int64_t>& prime_ids,
                      const ckks::Context& context, uint64_t state) {
  const int64_t degree = context.parameters().ring_degree();
  uint64_t* word = tensor.data_as<uint64_t>();
  for (int64_t row = 0; row < tensor.element_count() / degree; ++row) {
    const uint64_t q = context.prime(prime_ids[row % prime_ids.size()]);
    for (int64_t i = 0; i < degree; ++i) {
      state += 0x9E3779B97F4A7C15;
      uint64_t z = state;
      z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
      *word++ = (z ^ (z >> 27)) % q;
    }
  }
}

bool HoldSameBytes(const ValueTree& a, const ValueTree& b) {
  return std::ranges::equal(
      value::TensorsOf(a), value::TensorsOf(b), [](const value::Tensor* x, const value::Tensor* y) {
        return x->bytes() == y->bytes() && std::memcmp(x->data(), y->data(), x->bytes()) == 0;
      });
}

std::string TenantName(int tenant) { return absl::StrCat("tenant", tenant); }
std::string KeySetId(int tenant) { return absl::StrFormat("%064x", tenant + 1); }

absl::StatusOr<ValueTree> OnDevice(const ValueTree& host, runtime::Stream& stream) {
  return value::MapTensors(
      host, "inputs",
      [&](const std::string&, const value::Tensor& tensor) -> absl::StatusOr<value::Tensor> {
        CIPHERD_ASSIGN_OR_RETURN(value::Tensor copy, value::DeviceTensorLike(tensor, stream));
        CIPHERD_RETURN_IF_ERROR(value::CopyTensorAsync(tensor, copy, stream));
        return copy;
      });
}

// A tenant's keys and their table on the device, for one who calls the program directly.
struct DirectKeys {
  ckks::KeySet keys;
  ckks::KeyTable table;
};
absl::StatusOr<DirectKeys> UploadKeys(const ckks::KeySet& host, const ckks::KeyLayout& layout,
                                      runtime::Stream& stream) {
  DirectKeys direct;
  for (const auto& [id, key] : host) {
    CIPHERD_ASSIGN_OR_RETURN(ckks::EvaluationKey resident, ckks::UploadKey(key, stream));
    direct.keys.emplace(id, std::move(resident));
  }
  CIPHERD_ASSIGN_OR_RETURN(direct.table, ckks::MakeKeyTable(layout, direct.keys, stream));
  return direct;
}

std::vector<ValueTree> ArgumentsOf(const ValueTree& inputs, const DirectKeys& keys) {
  std::vector<ValueTree> arguments = inputs.children();
  arguments.push_back(ValueTree::Leaf(keys.table.addresses));
  return arguments;
}

}  // namespace

absl::StatusOr<std::unique_ptr<EngineWorkload>> EngineWorkload::Create(
    std::shared_ptr<const engine::InterpretedProgram> program, const std::string& device_spec,
    const engine::ServingSettings& settings) {
  std::unique_ptr<EngineWorkload> workload(new EngineWorkload);
  workload->program_ = std::move(program);
  runtime::DeviceOptions pools;
  pools.device_memory.slab_bytes = size_t{256} << 20;
  pools.pinned_memory.slab_bytes = size_t{256} << 20;
  CIPHERD_ASSIGN_OR_RETURN(std::unique_ptr<runtime::Device> device,
                           runtime::OpenDevice(device_spec, pools));
  workload->device_ = device.get();
  engine::EngineOptions options;
  CIPHERD_ASSIGN_OR_RETURN(workload->engine_,
                           engine::Engine::Create(std::move(device), options, base::Clock::Real()));
  engine::Engine& engine = *workload->engine_;
  CIPHERD_RETURN_IF_ERROR(engine.AddProgram(workload->program_, settings));
  CIPHERD_RETURN_IF_ERROR(engine.LoadProgram(workload->program_->info().name));
  for (int tenant = 0; tenant < kTenantCount; ++tenant) {
    CIPHERD_RETURN_IF_ERROR(workload->MakeKeys(tenant));
  }
  CIPHERD_RETURN_IF_ERROR(workload->MakeInputs());
  CIPHERD_RETURN_IF_ERROR(workload->MakeExpected());
  CIPHERD_RETURN_IF_ERROR(workload->FillPlaces());
  return workload;
}

absl::Status EngineWorkload::MakeKeys(int tenant) {
  const ckks::Context& context = *program_->checked().context;
  const ckks::ContextParameters& parameters = context.parameters();
  const std::vector<int64_t> prime_ids = parameters.ActivePrimeIds(0, /*with_p=*/true);
  const ckks::KeyLayout& layout = program_->info().keys;
  CIPHERD_ASSIGN_OR_RETURN(
      engine::KeyUpload upload,
      engine_->keys().Reserve(TenantName(tenant),
                              layout.size() * ckks::EvaluationKeyBytes(parameters)));
  ckks::KeySet keys;
  for (const ckks::KeyId& id : layout.ids()) {
    CIPHERD_ASSIGN_OR_RETURN(
        value::Tensor data,
        upload.Allocate({static_cast<int64_t>(parameters.digits.size()), 2,
                         static_cast<int64_t>(prime_ids.size()), parameters.ring_degree()}));
    FillWithResidues(data, prime_ids, context, /*state=*/1000 * tenant + keys.size());
    keys.emplace(id, ckks::EvaluationKey{id, std::move(data)});
  }
  // Without a key directory both are done when they return.
  absl::Status status;
  engine_->keys().Commit(
      std::move(upload),
      {.id = KeySetId(tenant), .context_id = program_->info().context_id, .keys = std::move(keys)},
      [&](const auto& committed) { status = committed.status(); });
  CIPHERD_RETURN_IF_ERROR(status);
  engine_->keys().Acquire(TenantName(tenant), KeySetId(tenant))->Await([&](const auto& resident) {
    status = resident.status();
    if (resident.ok()) keys_.push_back(*resident);
  });
  return status;
}

absl::Status EngineWorkload::MakeInputs() {
  for (int input = 0; input < kInputCount; ++input) {
    CIPHERD_ASSIGN_OR_RETURN(const EvaluationTrees trees,
                             program_->MakeTrees(&value::Tensor::AllocateHost));
    for (const ValueTree& child : trees.inputs.children()) {
      const value::ExactValue& ciphertext = child.exact_value();
      FillWithResidues(*ciphertext.FindTensor("data"), *ciphertext.metadata.prime_ids,
                       *program_->checked().context, /*state=*/777 + input);
    }
    inputs_.push_back(trees.inputs);
  }
  return absl::OkStatus();
}

absl::Status EngineWorkload::MakeExpected() {
  CIPHERD_ASSIGN_OR_RETURN(std::unique_ptr<runtime::Stream> stream, device_->CreateStream("eager"));
  CIPHERD_ASSIGN_OR_RETURN(const engine::ProgramBinding binding,
                           program_->Bind(*device_, *stream, {}));
  CIPHERD_ASSIGN_OR_RETURN(const execution::ProgramFunction function,
                           binding.make_function(/*output_events=*/{}));
  expected_.resize(kInputCount);
  for (int tenant = 0; tenant < kTenantCount; ++tenant) {
    CIPHERD_ASSIGN_OR_RETURN(const DirectKeys keys,
                             UploadKeys(keys_[tenant]->keys, program_->info().keys, *stream));
    for (int input = 0; input < kInputCount; ++input) {
      CIPHERD_ASSIGN_OR_RETURN(const ValueTree on_device, OnDevice(inputs_[input], *stream));
      CIPHERD_ASSIGN_OR_RETURN(const ValueTree result,
                               function(ArgumentsOf(on_device, keys), *stream));
      CIPHERD_ASSIGN_OR_RETURN(const EvaluationTrees host,
                               program_->MakeTrees(&value::Tensor::AllocateHost));
      CIPHERD_RETURN_IF_ERROR(value::CopyTreeAsync(result, host.outputs, *stream));
      CIPHERD_RETURN_IF_ERROR(stream->Synchronize());
      expected_[input].push_back(host.outputs);
    }
  }
  return absl::OkStatus();
}

absl::Status EngineWorkload::FillPlaces() {
  const auto served = engine_->FindProgram(program_->info().name);
  std::vector<engine::RequestPtr> requests;
  absl::Status status;
  for (size_t i = 0; i < (*served)->trees().size() && status.ok(); ++i) {
    requests.push_back(engine_->Open(
        {.program = program_->info().name, .tenant = TenantName(0), .key_set_id = KeySetId(0)}));
    status = engine_->Admit(*requests.back());
    if (!status.ok()) break;
    const int input = static_cast<int>(i % kInputCount);
    const ValueTree& target = requests.back()->inputs();
    const auto from = value::TensorsOf(inputs_[input]);
    const auto to = value::TensorsOf(target);
    for (size_t t = 0; t < to.size(); ++t) {
      status.Update(value::CopyTensorOnHost(*from[t], *to[t]));
    }
    for (const value::Tensor* tensor : value::TensorsOf(requests.back()->outputs())) {
      std::memset(tensor->data(), 0, tensor->bytes());
    }
    input_at_[to.front()->data()] = input;
  }
  for (const engine::RequestPtr& request : requests) {
    request->Finish(RequestState::kReceiving, absl::CancelledError("only filled"));
  }
  return status;
}

absl::StatusOr<double> EngineWorkload::BareReplaySeconds(double seconds) {
  CIPHERD_ASSIGN_OR_RETURN(std::unique_ptr<runtime::Stream> stream, device_->CreateStream("bare"));
  CIPHERD_ASSIGN_OR_RETURN(const engine::ProgramBinding binding,
                           program_->Bind(*device_, *stream, {}));
  CIPHERD_ASSIGN_OR_RETURN(const DirectKeys keys,
                           UploadKeys(keys_[0]->keys, program_->info().keys, *stream));
  CIPHERD_ASSIGN_OR_RETURN(const ValueTree on_device, OnDevice(inputs_[0], *stream));
  CIPHERD_RETURN_IF_ERROR(stream->Synchronize());
  CIPHERD_ASSIGN_OR_RETURN(execution::ProgramFunction function,
                           binding.make_function(/*output_events=*/{}));
  CIPHERD_ASSIGN_OR_RETURN(
      const std::unique_ptr<execution::CudaGraphProgram> captured,
      execution::CudaGraphProgram::Capture(std::move(function), ArgumentsOf(on_device, keys), {}));
  CIPHERD_ASSIGN_OR_RETURN(runtime::Graph* const graph, captured->cuda_graph());

  constexpr int kLoops = 5;
  const auto loop = [&](int count) -> absl::StatusOr<double> {
    const absl::Time start = absl::Now();
    for (int i = 0; i < count; ++i) CIPHERD_RETURN_IF_ERROR(graph->Launch(*stream));
    CIPHERD_RETURN_IF_ERROR(stream->Synchronize());
    return absl::ToDoubleSeconds(absl::Now() - start) / count;
  };
  CIPHERD_ASSIGN_OR_RETURN(const double warm, loop(3));
  const int count = std::max(3, static_cast<int>(seconds / kLoops / warm));
  std::vector<double> measured;
  for (int i = 0; i < kLoops; ++i) {
    CIPHERD_ASSIGN_OR_RETURN(const double replay, loop(count));
    measured.push_back(replay);
  }
  std::nth_element(measured.begin(), measured.begin() + kLoops / 2, measured.end());
  return measured[kLoops / 2];
}

// One of the threads that keep requests under way.
class EngineWorkload::Client {
 public:
  Client(EngineWorkload& workload, const LoadOptions& options, std::atomic<int>& next)
      : workload_(workload), options_(options), next_(next) {
    for (int tenant = 0; tenant < options.tenants; ++tenant) {
      heads_.push_back({.program = workload.program_->info().name,
                        .tenant = TenantName(tenant),
                        .key_set_id = KeySetId(tenant)});
    }
  }

  void RunAll() {
    for (int i = next_++; i < options_.request_count && status_.ok(); i = next_++) {
      status_ = RunOne(i % options_.tenants);
      if (options_.pause > absl::ZeroDuration()) absl::SleepFor(options_.pause);
    }
    if (last_ != nullptr) {
      if (!last_is_checked_) status_.Update(Check(*last_, last_tenant_));
      last_->Finish(RequestState::kReplying, absl::OkStatus());
    }
  }

  const absl::Status& status() const { return status_; }
  const std::vector<Sample>& samples() const { return samples_; }

 private:
  absl::Status RunOne(int tenant) {
    engine::Engine& engine = *workload_.engine_;
    // Kept until here so that the last one can be checked after the run.
    if (last_ != nullptr) last_->Finish(RequestState::kReplying, absl::OkStatus());
    last_ = nullptr;
    const absl::Time start = absl::Now();
    const engine::RequestPtr request = engine.Open(heads_[tenant]);
    if (const absl::Status admitted = engine.Admit(*request); !admitted.ok()) {
      request->Finish(RequestState::kReceiving, admitted);
      return admitted;
    }
    absl::Notification ended;
    absl::Status result;
    Sample sample;
    engine.Submit(request, [&](const absl::Status& status) {
      sample.completed_at = absl::Now();
      result = status;
      ended.Notify();
    });
    ended.WaitForNotification();
    CIPHERD_RETURN_IF_ERROR(result);
    sample.latency = sample.completed_at - start;
    sample.times = request->times();
    sample.timeline = request->timeline();
    last_ = request;
    last_tenant_ = tenant;
    last_is_checked_ = samples_.empty() || options_.checks_all;
    if (last_is_checked_) CIPHERD_RETURN_IF_ERROR(Check(*request, tenant));
    samples_.push_back(sample);
    return absl::OkStatus();
  }

  // Whether the result is right; spoils it, so that it is not found right again unless it is
  // computed again.
  absl::Status Check(const engine::Request& request, int tenant) {
    const void* const address = value::TensorsOf(request.inputs()).front()->data();
    const int input = workload_.input_at_.at(address);
    if (!HoldSameBytes(request.outputs(), workload_.expected_[input][tenant])) {
      return absl::InternalError("a result differs from that of an eager run");
    }
    for (const value::Tensor* tensor : value::TensorsOf(request.outputs())) {
      std::memset(tensor->data(), 0, std::min<int64_t>(tensor->bytes(), 4096));
    }
    ++workload_.checked_count_;
    return absl::OkStatus();
  }

  EngineWorkload& workload_;
  const LoadOptions& options_;
  std::atomic<int>& next_;
  // Of each tenant's requests.
  std::vector<engine::RequestHead> heads_;
  engine::RequestPtr last_;
  int last_tenant_ = 0;
  bool last_is_checked_ = false;
  std::vector<Sample> samples_;
  absl::Status status_;
};

absl::StatusOr<std::vector<Sample>> EngineWorkload::Run(const LoadOptions& options) {
  std::atomic<int> next = 0;
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < options.concurrency; ++i) {
    clients.push_back(std::make_unique<Client>(*this, options, next));
  }
  std::vector<std::thread> threads;
  for (const auto& client : clients) threads.emplace_back([&client] { client->RunAll(); });
  for (std::thread& thread : threads) thread.join();
  std::vector<Sample> samples;
  for (const auto& client : clients) {
    CIPHERD_RETURN_IF_ERROR(client->status());
    samples.insert(samples.end(), client->samples().begin(), client->samples().end());
  }
  std::ranges::sort(samples, {}, &Sample::completed_at);
  return samples;
}

}  // namespace cipherd::bench
