// Requests that run as one batch: each gets what it would have got alone.
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/blocking_counter.h"
#include "core/base/status_macros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/failure_reason.h"
#include "server/engine/interpreted_program.h"
#include "tests/programs/spec_builder.h"
#include "tests/server/engine/engine_fixture.h"
#include "tests/testing/fault_device.h"

namespace cipherd::engine {
namespace {

using ::cipherd::testing::FaultDevice;
using ::cipherd::testing::FaultPoint;
using ::cipherd::testing::OpenTestDevice;
using ::cipherd::testing::StatusIs;
using namespace engine::testing;  // NOLINT: the test's own vocabulary

// One batch at a time, of up to four.
class EngineBatchTest : public EngineTest, public ::testing::WithParamInterface<CompletionMode> {
 protected:
  void StartBatched(absl::Duration max_batch_delay = absl::ZeroDuration()) {
    max_batch_delay_ = max_batch_delay;
    ASSERT_OK_AND_ASSIGN(std::unique_ptr<runtime::Device> inner, OpenTestDevice("cpu"));
    auto device = std::make_unique<FaultDevice>(std::move(inner));
    device_ = device.get();
    EngineOptions options = SmallEngine();
    options.completion = GetParam();
    Start(std::move(device), options);
    launches_before_ = device_->call_count(FaultPoint::kGraphLaunch);
  }
  ServingSettings Serving(const EngineOptions& options) override {
    ServingSettings settings = options.DefaultServing();
    settings.instances = 1;
    settings.batch_sizes = {1, 2, 4};
    settings.queue_capacity = 12;
    settings.max_batch_delay = max_batch_delay_;
    return settings;
  }
  int launches() { return device_->call_count(FaultPoint::kGraphLaunch) - launches_before_; }

  // Holds the only instance with a request, and queues one of each tenant behind it.
  std::vector<std::unique_ptr<Call>> QueueBehindOne(const std::vector<int>& tenants) {
    gate_->Close();
    const int arrivals = gate_->arrivals();
    std::vector<std::unique_ptr<Call>> calls;
    calls.push_back(Run(1, 7));
    gate_->AwaitArrivals(arrivals + 1);
    for (size_t i = 0; i < tenants.size(); ++i) calls.push_back(Run(tenants[i], 1000 * i));
    EXPECT_EQ(engine_->scheduler().queued_count(served()), tenants.size());
    return calls;
  }

  FaultDevice* device_ = nullptr;
  absl::Duration max_batch_delay_;
  int launches_before_ = 0;
};

TEST_P(EngineBatchTest, WhatIsQueuedRunsInTheLargestBatchesAndEachGetsItsOwnResult) {
  StartBatched();
  const auto calls = QueueBehindOne({1, 2, 3, 3, 2, 1, 1});
  gate_->Open();
  for (const auto& call : calls) EXPECT_TRUE(call->is_correct()) << call->result().ToString();
  // 1, then 4 + 2 + 1.
  EXPECT_EQ(launches(), 4);
  EXPECT_EQ(served().run_counts().replays(), (std::map<int, uint64_t>{{1, 2}, {2, 1}, {4, 1}}));
  EXPECT_EQ(served().run_counts().eager_runs(), 0u);
}

TEST_P(EngineBatchTest, ALoneRequestWaitsNoLongerThanItsProgramAllows) {
  StartBatched(absl::Milliseconds(1));
  auto call = Run(2, 5);
  EXPECT_TRUE(call->is_correct());
  // Until a busy machine lets the worker look, it merely queues.
  const StageTimes& times = call->request()->times();
  EXPECT_GE(times.batch_wait_seconds + times.queue_seconds, 0.999e-3);
  EXPECT_EQ(launches(), 1);
}

TEST_P(EngineBatchTest, OneWhoseKeysFindNoRoomDoesNotHarmTheOthersOfItsBatch) {
  StartBatched();
  const auto calls = QueueBehindOne({1, 2, 1, 1});
  device_->FailNth(FaultPoint::kAllocate, 1, absl::ResourceExhaustedError("injected"));
  gate_->Open();
  for (size_t i = 0; i < calls.size(); ++i) {
    if (i == 2) {
      EXPECT_THAT(calls[i]->result(), StatusIs(absl::StatusCode::kResourceExhausted));
      EXPECT_EQ(ReasonOf(calls[i]->result()), FailureReason::kOverloaded);
    } else {
      EXPECT_TRUE(calls[i]->is_correct()) << i << ": " << calls[i]->result().ToString();
    }
  }
  EXPECT_EQ(launches(), 2);
  EXPECT_TRUE(engine_->workers()[0]->is_healthy());
}

TEST_P(EngineBatchTest, WhenNoKeysFindRoomNothingRuns) {
  StartBatched();
  const auto calls = QueueBehindOne({2});
  device_->FailNth(FaultPoint::kAllocate, 1, absl::ResourceExhaustedError("injected"));
  gate_->Open();
  EXPECT_THAT(calls[1]->result(), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(launches(), 1);
  EXPECT_TRUE(Run(2, 9)->is_correct());
}

TEST_P(EngineBatchTest, OneThatIsCancelledLeavesTheOthersOfItsBatchAlone) {
  StartBatched();
  const auto calls = QueueBehindOne({1, 2, 3, 1});
  const int arrivals = gate_->arrivals();
  gate_->Open();
  EXPECT_TRUE(calls[0]->is_correct());
  gate_->AwaitArrivals(arrivals + 1);
  engine_->Cancel(calls[2]->request());
  for (size_t i : {1, 3, 4}) EXPECT_TRUE(calls[i]->is_correct()) << i;
  // Whether it was in time is a race; it has ended, and gave everything back.
  calls[2]->result();
  EXPECT_EQ(served().trees().leased_count(), 0u);
}

INSTANTIATE_TEST_SUITE_P(Modes, EngineBatchTest,
                         ::testing::Values(CompletionMode::kNotified, CompletionMode::kPolled),
                         [](const auto& info) {
                           return info.param == CompletionMode::kPolled ? "polled" : "notified";
                         });

// Ciphertexts of a small ring through multiplication, relinearization, rescaling, rotation and
// three matrices.
class RealProgramBatchTest : public ::testing::Test {
 protected:
  static std::shared_ptr<const InterpretedProgram> MakeProgram() {
    using programs::OperationKind;
    programs::SpecBuilder spec(programs::SmallContext());
    spec.Input("x").Input("y");
    spec.Add({.name = "xy", .kind = OperationKind::kMultiply, .a = "x", .b = "y"});
    spec.Add({.name = "relinearized", .kind = OperationKind::kRelinearize, .a = "xy"});
    spec.Add({.name = "rescaled", .kind = OperationKind::kRescale, .a = "relinearized"});
    spec.Add({.name = "turned", .kind = OperationKind::kRotate, .a = "rescaled", .step = 3});
    spec.Constant("offsets", programs::Offsets({0, 1, 2}));
    for (const char* name : {"a", "b", "c"}) {
      spec.Constant(absl::StrCat("diagonals_", name),
                    programs::HostTensor<double>(value::DType::kFloat64, {3, 1},
                                                 {0.5, 0.25 * (*name - 'd'), 1}));
      spec.Add({.name = absl::StrCat("matrix_", name),
                .kind = OperationKind::kLinearTransform,
                .a = "turned",
                .constant = absl::StrCat("diagonals_", name),
                .expansion = {.repeat = 1, .tile = true},
                .offsets = "offsets"});
    }
    spec.Add({.name = "ab", .kind = OperationKind::kAdd, .a = "matrix_a", .b = "matrix_b"});
    spec.Add({.name = "abc", .kind = OperationKind::kSubtract, .a = "ab", .b = "matrix_c"});
    spec.Output("matrix_a").Output("ab").Output("abc");
    return InterpretedProgram::Create(programs::CheckProgram(spec.Build(), spec.constants(),
                                                             ckks::SecurityPolicy::kAllowInsecure)
                                          .value())
        .value();
  }

  // Residues that depend on the seed.
  static void Fill(const value::Tensor& tensor, const std::vector<int64_t>& prime_ids,
                   const ckks::Context& context, uint64_t seed) {
    uint64_t* words = tensor.data_as<uint64_t>();
    const int64_t degree = context.parameters().ring_degree();
    for (int64_t i = 0; i < tensor.element_count(); ++i) {
      seed = seed * 6364136223846793005 + 1442695040888963407;
      words[i] = (seed >> 3) % context.prime(prime_ids[i / degree % prime_ids.size()]);
    }
  }

  static absl::Status PutKeys(Engine& engine, const InterpretedProgram& program, int tenant) {
    const ckks::Context& context = *program.checked().context;
    const ckks::ContextParameters& parameters = context.parameters();
    const std::vector<int64_t> prime_ids = parameters.ActivePrimeIds(0, true);
    const ckks::KeyLayout& layout = program.info().keys;
    CIPHERD_ASSIGN_OR_RETURN(
        KeyUpload upload,
        engine.keys().Reserve(std::to_string(tenant),
                              layout.size() * ckks::EvaluationKeyBytes(parameters)));
    ckks::KeySet keys;
    for (const ckks::KeyId& id : layout.ids()) {
      CIPHERD_ASSIGN_OR_RETURN(
          value::Tensor data,
          upload.Allocate({static_cast<int64_t>(parameters.digits.size()), 2,
                           static_cast<int64_t>(prime_ids.size()), parameters.ring_degree()}));
      Fill(data, prime_ids, context, 100 * tenant + keys.size());
      keys.emplace(id, ckks::EvaluationKey{id, std::move(data)});
    }
    // Without a key directory it is there at once.
    absl::Status status;
    engine.keys().Commit(std::move(upload),
                         {.id = TestKeySetId(tenant),
                          .context_id = program.info().context_id,
                          .keys = std::move(keys)},
                         [&](const auto& committed) { status = committed.status(); });
    return status;
  }

  struct Options {
    int64_t constant_memory_bytes = INT64_MAX;
    // Or several, with commas between them.
    std::string device = "cpu";
    // Outputs are taken when they are told of, as they are then.
    bool takes_early_outputs = false;
    // So that the batches fill.
    absl::Duration max_batch_delay = absl::Seconds(5);
  };

  // The outputs of requests of three tenants, all submitted before the first one runs.
  using Bytes = std::vector<uint8_t>;
  static std::vector<std::vector<Bytes>> ResultsWith(const std::vector<int>& batch_sizes,
                                                     int request_count) {
    return ResultsWith(batch_sizes, request_count, Options());
  }
  static std::vector<std::vector<Bytes>> ResultsWith(const std::vector<int>& batch_sizes,
                                                     int request_count, const Options& options) {
    std::vector<std::vector<Bytes>> results(request_count);
    const std::shared_ptr<const InterpretedProgram> program = MakeProgram();
    Engine::Devices devices;
    for (const std::string& device :
         std::vector<std::string>(absl::StrSplit(options.device, ','))) {
      devices.push_back(OpenTestDevice(device).value());
    }
    auto engine = Engine::Create(std::move(devices), {}, base::Clock::Real()).value();
    ServingSettings settings;
    settings.instances = 2;
    settings.batch_sizes = batch_sizes;
    settings.constant_memory_bytes = options.constant_memory_bytes;
    settings.max_batch_delay = options.max_batch_delay;
    EXPECT_OK(engine->AddProgram(program, settings));
    EXPECT_OK(engine->LoadProgram("test"));
    for (int tenant = 0; tenant < 3; ++tenant) EXPECT_OK(PutKeys(*engine, *program, tenant));
    // Each device is to have a part in it.
    while (engine->scheduler().taking_count() < static_cast<int>(engine->workers().size())) {
      std::this_thread::yield();
    }
    absl::BlockingCounter ended(request_count);
    for (int i = 0; i < request_count; ++i) {
      const RequestPtr request = engine->Open(
          {.program = "test", .tenant = std::to_string(i % 3), .key_set_id = TestKeySetId(i % 3)});
      EXPECT_OK(engine->Admit(*request));
      for (const value::ValueTree& child : request->inputs().children()) {
        const value::ExactValue& value = child.exact_value();
        Fill(*value.FindTensor("data"), *value.metadata.prime_ids, *program->checked().context,
             31 * i + (&child - request->inputs().children().data()));
      }
      const auto take = [&results, request = request.get(), i](size_t count) {
        for (size_t output = results[i].size(); output < count; ++output) {
          const value::Tensor& data = *value::TensorsOf(request->outputs()[output]).front();
          results[i].emplace_back(data.data_as<uint8_t>(), data.data_as<uint8_t>() + data.bytes());
        }
      };
      if (options.takes_early_outputs) request->set_output_listener(take);
      engine->Submit(request, [&, request, i, take](const absl::Status& status) {
        EXPECT_OK(status);
        const size_t output_count = request->outputs().children().size();
        EXPECT_LT(results[i].size(), options.takes_early_outputs ? output_count : 1);
        take(output_count);
        request->Finish(RequestState::kReplying, absl::OkStatus());
        ended.DecrementCount();
      });
    }
    ended.Wait();
    for (size_t device = 0; device < engine->device_count(); ++device) {
      EXPECT_GT(engine->key_residency(device).stats().loads, 0u) << "device " << device;
    }
    EXPECT_OK(engine->Stop());
    return results;
  }
};

TEST_F(RealProgramBatchTest, BatchedAndSingleResultsAreEqualBitForBit) {
  constexpr int kRequests = 8;
  const auto single = ResultsWith({1}, kRequests);
  EXPECT_EQ(ResultsWith({1, 8}, kRequests), single);
  EXPECT_EQ(ResultsWith({1, 4}, kRequests), single);
  EXPECT_NE(single[0], single[3]) << "inputs differ";
}

// Lists of devices of one host that a daemon may serve on; a host's only GPU is opened twice.
std::vector<std::string> DeviceLists() {
  std::vector<std::string> lists = {"cpu:0,cpu:1", "cpu:0,cpu:1,cpu:2"};
  const int gpu_count = runtime::CudaDeviceCount();
  if (gpu_count == 1) lists.push_back("cuda:0,cuda:0");
  if (gpu_count >= 2) lists.push_back("cuda:0,cuda:1");
  return lists;
}

TEST_F(RealProgramBatchTest, SeveralDevicesGiveTheResultsOfOneBitForBit) {
  constexpr int kRequests = 24;
  const auto single = ResultsWith({1}, kRequests);
  // Two matrices have room; constants of the third stay in pinned memory, each device's own.
  constexpr int64_t kMatrixBytes = 3 * (3 + 2) * 256 * 8;
  for (const std::string& devices : DeviceLists()) {
    SCOPED_TRACE(devices);
    Options options = {.device = devices, .max_batch_delay = absl::ZeroDuration()};
    EXPECT_EQ(ResultsWith({1}, kRequests, options), single);
    options.constant_memory_bytes = 2 * kMatrixBytes;
    EXPECT_EQ(ResultsWith({1}, kRequests, options), single);
    options.takes_early_outputs = true;
    EXPECT_EQ(ResultsWith({1, 4}, kRequests, options), single);
  }
}

TEST_F(RealProgramBatchTest, ConstantsThatComeInTilesGiveTheSameResults) {
  constexpr int kRequests = 8;
  const std::shared_ptr<const InterpretedProgram> program = MakeProgram();
  // Three diagonals of 256 words a limb, of Q at depth 1 and of P. Two of the three matrices have
  // room.
  ASSERT_TRUE(program->checked().plans.at("matrix_a").hoists_twice());
  constexpr int64_t kMatrixBytes = 3 * (3 + 2) * 256 * 8;
  const auto tiled = ResultsWith({1, 4}, kRequests, {.constant_memory_bytes = 2 * kMatrixBytes});
  EXPECT_EQ(tiled, ResultsWith({1}, kRequests));
  auto engine = Engine::Create(OpenTestDevice("cpu").value(), {}, base::Clock::Real()).value();
  ServingSettings settings;
  settings.constant_memory_bytes = 2 * kMatrixBytes - 1;
  EXPECT_OK(engine->AddProgram(program, settings));
  const size_t before = engine->device().device_memory_stats().allocated_bytes;
  EXPECT_THAT(engine->LoadProgram("test"), StatusIs(absl::StatusCode::kResourceExhausted,
                                                    ::testing::HasSubstr("operation 'matrix_a'")));
  EXPECT_EQ(engine->device().device_memory_stats().allocated_bytes, before);
  EXPECT_OK(engine->Stop());
}

TEST_F(RealProgramBatchTest, EarlyOutputsAreThoseOfTheEndBitForBit) {
  constexpr int kRequests = 24;
  const auto at_once = ResultsWith({1}, kRequests);
  EXPECT_NE(at_once[0][0], at_once[0][1]);
  for (const std::string& device : cipherd::testing::DevicesUnderTest()) {
    if (device.find("puppet") != std::string::npos) continue;
    for (const int batch : {1, 4}) {
      const std::vector<int> batch_sizes = batch == 1 ? std::vector{1} : std::vector{1, batch};
      EXPECT_EQ(
          ResultsWith(batch_sizes, kRequests, {.device = device, .takes_early_outputs = true}),
          at_once)
          << device << ", batches of " << batch;
    }
  }
}

}  // namespace
}  // namespace cipherd::engine
