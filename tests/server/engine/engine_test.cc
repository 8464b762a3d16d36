// The engine from header to result, on the CPU device.
#include "server/engine/engine.h"

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "server/engine/failure_reason.h"
#include "tests/server/engine/engine_fixture.h"

namespace cipherd::engine {
namespace {

using ::cipherd::testing::OpenTestDevice;
using ::cipherd::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using namespace engine::testing;  // NOLINT: the test's own vocabulary

using EngineCpuTest = EngineTest;

TEST_F(EngineCpuTest, ARequestGetsTheResultOfItsInputsAndItsTenantsKeys) {
  StartOnCpu();
  for (int tenant : {1, 2, 1, 3}) {
    auto call = Run(tenant, 100 * tenant);
    EXPECT_OK(call->result());
    EXPECT_TRUE(call->is_correct()) << "tenant " << tenant;
  }
  EXPECT_EQ(counts().FinishedIn(RequestState::kSucceeded), 4u);
}

TEST_F(EngineCpuTest, ResultsOfConcurrentClientsAreNeverMixed) {
  EngineOptions options = SmallEngine();
  options.workers = 2;
  options.queue_capacity = 64;
  // Room for two of three key sets: tenants evict each other all the time.
  options.keys.device_budget_bytes = 2 * (2 * kWordCount * 8);
  StartOnCpu(options);
  std::atomic<int> wrong = 0;
  std::atomic<int> failed = 0;
  std::vector<std::thread> clients;
  for (int client = 0; client < 6; ++client) {
    clients.emplace_back([&, client] {
      for (int i = 0; i < 40; ++i) {
        auto call = Run(1 + (client + i) % 3, 1'000'000 * client + 1000 * i);
        if (!call->result().ok()) ++failed;
        if (!call->is_correct()) ++wrong;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(counts().FinishedIn(RequestState::kSucceeded), 240u);
  EXPECT_GT(engine_->key_residency().stats().evictions, 0u);
}

TEST_F(EngineCpuTest, AWarmEngineTakesNoMemoryFromTheSystem) {
  StartOnCpu();
  for (int i = 0; i < 5; ++i) EXPECT_OK(Run(1, i)->result());
  const runtime::MemoryStats device = engine_->device().device_memory_stats();
  const runtime::MemoryStats pinned = engine_->device().pinned_memory_stats();
  for (int i = 0; i < 50; ++i) EXPECT_OK(Run(1, i)->result());
  EXPECT_EQ(engine_->device().device_memory_stats().slab_allocation_count,
            device.slab_allocation_count);
  EXPECT_EQ(engine_->device().pinned_memory_stats().slab_allocation_count,
            pinned.slab_allocation_count);
  EXPECT_EQ(engine_->device().device_memory_stats().allocated_bytes, device.allocated_bytes);
  EXPECT_EQ(engine_->device().pinned_memory_stats().allocated_bytes, pinned.allocated_bytes);
}

TEST_F(EngineCpuTest, EachRefusalHasItsOwnStatusAndTheNextRequestSucceeds) {
  StartOnCpu();
  auto loading = std::make_shared<TestProgram>("loading");
  ASSERT_OK(engine_->AddProgram(loading));
  struct Case {
    RequestHead head;
    absl::StatusCode code;
    FailureReason reason;
  };
  RequestHead unknown_program = Head(1), not_ready = Head(1), unknown_keys = Head(1),
              no_keys = Head(1), foreign_keys = Head(1);
  unknown_program.program = "nothing";
  not_ready.program = "loading";
  unknown_keys.key_set_id = TestKeySetId(77);
  no_keys.key_set_id = "";
  foreign_keys.key_set_id = TestKeySetId(2);
  const Case cases[] = {
      {unknown_program, absl::StatusCode::kNotFound, FailureReason::kUnknownProgram},
      {not_ready, absl::StatusCode::kUnavailable, FailureReason::kUnavailable},
      {unknown_keys, absl::StatusCode::kNotFound, FailureReason::kUnknownKeySet},
      {no_keys, absl::StatusCode::kNotFound, FailureReason::kUnknownKeySet},
      {foreign_keys, absl::StatusCode::kNotFound, FailureReason::kUnknownKeySet},
  };
  for (const Case& c : cases) {
    Call call(*engine_, c.head, 1, 1);
    EXPECT_EQ(call.result().code(), c.code) << call.result().ToString();
    EXPECT_EQ(ReasonOf(call.result()), c.reason) << call.result().ToString();
    EXPECT_EQ(call.request()->state(), RequestState::kRejected);
    EXPECT_TRUE(Run(1, 5)->is_correct());
  }
  EXPECT_EQ(engine_->ledger().Snapshot().at("unknown").FinishedIn(RequestState::kRejected), 1u);
  EXPECT_EQ(served().trees().leased_count(), 0u);
}

TEST_F(EngineCpuTest, WhoAsksForAProgramThatIsNotServedIsToldWhatIs) {
  StartOnCpu();
  RequestHead unknown_program = Head(1), unknown_version = Head(1);
  unknown_program.program = "nothing";
  unknown_version.version = 7;
  EXPECT_THAT(Call(*engine_, unknown_program, 1, 1).result(),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("unknown program 'nothing'; served: '" + Head(1).program + "'")));
  EXPECT_THAT(Call(*engine_, unknown_version, 1, 1).result(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(" version 7; served: version 1")));
}

TEST_F(EngineCpuTest, WithEveryPlaceTakenTheNextRequestIsRefusedAndTheOthersSucceed) {
  StartOnCpu();
  gate_->Close();
  std::vector<std::unique_ptr<Call>> calls;
  const int places = SmallEngine().queue_capacity + SmallEngine().instances;
  for (int i = 0; i < places; ++i) calls.push_back(Run(1, i));
  auto refused = Run(1, 99);
  EXPECT_THAT(refused->result(), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(ReasonOf(refused->result()), FailureReason::kOverloaded);
  gate_->Open();
  for (auto& call : calls) EXPECT_TRUE(call->is_correct()) << call->result().ToString();
}

TEST_F(EngineCpuTest, ACancelledRequestInTheQueueEndsWhileTheDeviceIsBusy) {
  StartOnCpu();
  gate_->Close();
  auto running = Run(1, 1), running_too = Run(1, 2);
  while (engine_->workers()[0]->instance_counts(served()).leased != 2) std::this_thread::yield();
  auto queued = Run(2, 3);
  engine_->Cancel(queued->request());
  EXPECT_THAT(queued->result(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(served().trees().leased_count(), 2u);
  EXPECT_FALSE(running->has_ended());
  gate_->Open();
  EXPECT_TRUE(running->is_correct());
  EXPECT_TRUE(running_too->is_correct());
}

TEST_F(EngineCpuTest, ACancelledRequestOnTheDeviceGivesItsLeasesBackAfterItsReplay) {
  StartOnCpu();
  gate_->Close();
  const int arrivals = gate_->arrivals();
  auto running = Run(1, 1);
  gate_->AwaitArrivals(arrivals + 1);
  engine_->Cancel(running->request());
  EXPECT_FALSE(running->has_ended());
  EXPECT_EQ(served().trees().leased_count(), 1u);
  gate_->Open();
  EXPECT_THAT(running->result(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(served().trees().leased_count(), 0u);
  EXPECT_TRUE(Run(1, 2)->is_correct());
}

TEST_F(EngineCpuTest, ADeadlineThatPassesOnTheDeviceIsNotAResult) {
  const auto clock = std::make_shared<base::FakeClock>();
  StartOnCpu(SmallEngine(), clock);
  gate_->Close();
  const int arrivals = gate_->arrivals();
  RequestHead head = Head(1);
  head.deadline = clock->Now() + absl::Seconds(1);
  Call call(*engine_, head, 1, 1);
  gate_->AwaitArrivals(arrivals + 1);
  clock->Advance(absl::Seconds(2));
  gate_->Open();
  EXPECT_THAT(call.result(), StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("executing")));
}

TEST_F(EngineCpuTest, KeysDroppedWhileTheyAreReadServeTheReplayAndGoWithIt) {
  StartOnCpu();
  const int64_t set_bytes = engine_->keys().used_bytes() / 3;
  gate_->Close();
  const int arrivals = gate_->arrivals();
  auto running = Run(2, 5);
  gate_->AwaitArrivals(arrivals + 1);
  ASSERT_OK(DropTestKeys(engine_->keys(), TenantName(2), TestKeySetId(2)));
  EXPECT_THAT(Run(2, 5)->result(), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(engine_->keys().used_bytes(), 3 * set_bytes);
  gate_->Open();
  EXPECT_TRUE(running->is_correct());
  EXPECT_EQ(engine_->keys().used_bytes(), 2 * set_bytes);
  EXPECT_EQ(engine_->key_residency().stats().used_bytes, 0);
}

TEST_F(EngineCpuTest, ARequestWaitsUntilKeysOfAnotherMakeRoom) {
  EngineOptions options = SmallEngine();
  options.keys.device_budget_bytes = 2 * kWordCount * 8;  // one set
  StartOnCpu(options);
  gate_->Close();
  const int arrivals = gate_->arrivals();
  auto first = Run(1, 1);
  gate_->AwaitArrivals(arrivals + 1);
  auto second = Run(2, 2);
  // An instance is idle, but the keys in use may not leave.
  while (engine_->key_residency().stats().refusals == 0 &&
         engine_->scheduler().queued_count(served()) == 1) {
    std::this_thread::yield();
  }
  EXPECT_GT(engine_->key_residency().stats().refusals, 0u);
  EXPECT_EQ(engine_->workers()[0]->instance_counts(served()).leased, 1u);
  EXPECT_EQ(engine_->scheduler().queued_count(served()), 1u);
  gate_->Open();
  EXPECT_TRUE(first->is_correct());
  EXPECT_TRUE(second->is_correct());
}

TEST_F(EngineCpuTest, DrainingRefusesNewRequestsAndCompletesAdmittedOnes) {
  StartOnCpu();
  gate_->Close();
  std::vector<std::unique_ptr<Call>> calls;
  for (int i = 0; i < 4; ++i) calls.push_back(Run(1, i));
  std::thread drain([&] { EXPECT_TRUE(engine_->Drain(absl::InfiniteDuration())); });
  while (!engine_->is_draining()) std::this_thread::yield();
  EXPECT_THAT(Run(1, 9)->result(), StatusIs(absl::StatusCode::kUnavailable));
  gate_->Open();
  drain.join();
  for (auto& call : calls) EXPECT_TRUE(call->is_correct());
}

TEST_F(EngineCpuTest, ADrainThatRunsOutOfTimeEndsWhatIsQueued) {
  StartOnCpu();
  gate_->Close();
  auto running = Run(1, 1), running_too = Run(1, 2), queued = Run(1, 3);
  while (engine_->scheduler().queued_count(served()) != 1) std::this_thread::yield();
  EXPECT_FALSE(engine_->Drain(absl::Milliseconds(1)));
  EXPECT_THAT(queued->result(), StatusIs(absl::StatusCode::kUnavailable));
  gate_->Open();
  // What had begun completes.
  EXPECT_TRUE(running->is_correct());
  EXPECT_TRUE(running_too->is_correct());
}

TEST_F(EngineCpuTest, AProgramIsReadyOnlyOnceItsReplayIsVerified) {
  StartOnCpu();
  std::vector<std::pair<std::string, bool>> readiness;
  engine_->set_readiness_listener(
      [&](std::string_view program, bool ready) { readiness.emplace_back(program, ready); });
  auto unsteady = std::make_shared<TestProgram>("unsteady");
  unsteady->MakeUnsteady();
  ASSERT_OK(engine_->AddProgram(unsteady));
  EXPECT_THAT(engine_->LoadProgram("unsteady"),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("differs from an eager run")));
  EXPECT_FALSE((*engine_->FindProgram("unsteady"))->is_ready());
  EXPECT_TRUE(readiness.empty());

  ASSERT_OK(engine_->AddProgram(std::make_shared<TestProgram>("steady")));
  ASSERT_OK(engine_->LoadProgram("steady"));
  EXPECT_THAT(readiness, ElementsAre(Pair("steady", true)));
}

TEST_F(EngineCpuTest, AFailedLoadLeavesNoDeviceMemoryBehind) {
  StartOnCpu();
  auto broken = std::make_shared<TestProgram>("broken");
  broken->MakeUnsteady();
  ASSERT_OK(engine_->AddProgram(broken));
  EXPECT_FALSE(engine_->LoadProgram("broken").ok());
  const size_t before = engine_->device().device_memory_stats().allocated_bytes;
  for (int i = 0; i < 20; ++i) EXPECT_FALSE(engine_->LoadProgram("broken").ok());
  EXPECT_EQ(engine_->device().device_memory_stats().allocated_bytes, before);
}

TEST_F(EngineCpuTest, StageTimesAddUpToNoMoreThanTheWhole) {
  StartOnCpu();
  const absl::Time start = absl::Now();
  auto call = Run(1, 1);
  ASSERT_OK(call->result());
  const double whole = absl::ToDoubleSeconds(absl::Now() - start);
  const StageTimes& times = call->request()->times();
  EXPECT_GT(times.replay_seconds, 0);
  EXPECT_GT(times.transfer_in_seconds, 0);
  EXPECT_GT(times.transfer_out_seconds, 0);
  EXPECT_GE(times.queue_seconds, 0);
  EXPECT_LE(times.queue_seconds + times.batch_wait_seconds + times.transfer_in_seconds +
                times.device_wait_seconds + times.replay_seconds + times.transfer_out_seconds,
            whole);
}

TEST_F(EngineCpuTest, TimeBehindAnotherRequestOnTheDeviceIsAStage) {
  StartOnCpu();
  engine_->RecordTimelines(true);
  gate_->Close();
  auto first = Run(1, 1), second = Run(1, 2);
  while (engine_->workers()[0]->instance_counts(served()).leased != 2) std::this_thread::yield();
  absl::SleepFor(absl::Milliseconds(5));
  const absl::Time opened_at = absl::Now();
  gate_->Open();
  ASSERT_OK(first->result());
  ASSERT_OK(second->result());
  const StageTimes& times = second->request()->times();
  EXPECT_GE(times.transfer_in_seconds + times.device_wait_seconds,
            absl::ToDoubleSeconds(opened_at - second->request()->timeline().taken_at));
}

}  // namespace
}  // namespace cipherd::engine
