// An engine over a device, with helpers to run requests of the test program.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "server/engine/engine.h"
#include "tests/server/engine/test_program.h"
#include "tests/testing/devices.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::engine::testing {

// One request under way: what it was made of, and how it came out.
class Call {
 public:
  // Opens, admits, fills and submits. `result()` waits.
  Call(Engine& engine, RequestHead head, uint64_t value, uint64_t tenant_seed)
      : value_(value), tenant_seed_(tenant_seed), request_(engine.Open(std::move(head))) {
    if (const absl::Status status = engine.Admit(*request_); !status.ok()) {
      request_->Finish(RequestState::kReceiving, status);
      End(status);
      return;
    }
    FillInputs(request_->inputs(), value);
    engine.Submit(request_, [this](const absl::Status& status) { End(status); });
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() { done_.WaitForNotification(); }

  const RequestPtr& request() const { return request_; }
  bool has_ended() const { return done_.HasBeenNotified(); }
  // OK with `is_correct`, or the status that the request ended with.
  const absl::Status& result() {
    done_.WaitForNotification();
    return status_;
  }
  bool is_correct() {
    done_.WaitForNotification();
    return is_correct_;
  }

 private:
  void End(const absl::Status& status) {
    status_ = status;
    if (status.ok()) {
      const int64_t version = request_->program().info().version;
      is_correct_ = OutputsMatch(request_->outputs(), value_, tenant_seed_, version);
      request_->Finish(RequestState::kReplying, absl::OkStatus());
    }
    done_.Notify();
  }

  const uint64_t value_;
  const uint64_t tenant_seed_;
  RequestPtr request_;
  absl::Status status_;
  bool is_correct_ = false;
  absl::Notification done_;
};

inline EngineOptions SmallEngine() {
  EngineOptions options;
  options.workers = 1;
  options.instances = 2;
  options.queue_capacity = 4;
  options.warmup = 1;
  options.rebuild_pause = absl::Milliseconds(1);
  options.keys.host_budget_bytes = int64_t{1} << 20;
  options.keys.device_budget_bytes = int64_t{1} << 20;
  return options;
}

// Serves TestProgram "sum", whose runs pass gate_; tenants "tenant1", … with key sets 1, ….
class EngineTest : public ::testing::Test {
 protected:
  // Without a clock, by the real one.
  void Start(std::unique_ptr<runtime::Device> device, const EngineOptions& options,
             std::shared_ptr<const base::Clock> clock = nullptr) {
    Engine::Devices devices;
    devices.push_back(std::move(device));
    Start(std::move(devices), options, std::move(clock));
  }
  void Start(Engine::Devices devices, const EngineOptions& options,
             std::shared_ptr<const base::Clock> clock = nullptr) {
    runtime_device_ = devices.front().get();
    clock_ = std::move(clock);
    ASSERT_OK_AND_ASSIGN(engine_,
                         Engine::Create(std::move(devices), options,
                                        clock_ == nullptr ? base::Clock::Real() : *clock_));
    program_ = std::make_shared<TestProgram>("sum", gate_, /*version=*/1, output_count_);
    ASSERT_OK(engine_->AddProgram(program_, Serving(options)));
    ASSERT_OK(engine_->LoadProgram("sum"));
    for (int tenant = 1; tenant <= 3; ++tenant) {
      ASSERT_OK(PutTestKeys(engine_->keys(), TenantName(tenant), TestKeySetId(tenant), tenant));
    }
  }
  void StartOnCpu(const EngineOptions& options = SmallEngine(),
                  std::shared_ptr<const base::Clock> clock = nullptr) {
    ASSERT_OK_AND_ASSIGN(std::unique_ptr<runtime::Device> device,
                         cipherd::testing::OpenTestDevice("cpu"));
    Start(std::move(device), options, std::move(clock));
  }

  // How "sum" is served.
  virtual ServingSettings Serving(const EngineOptions& options) { return options.DefaultServing(); }

  // A leaked lease, or a ledger that does not balance, fails every test.
  void TearDown() override {
    gate_->Open();
    if (engine_ == nullptr) return;
    EXPECT_OK(engine_->Stop());
    for (const auto& [program, counts] : engine_->ledger().Snapshot()) {
      EXPECT_TRUE(counts.Balances()) << program;
      EXPECT_EQ(counts.in_flight, 0u) << program;
    }
  }

  static std::string TenantName(int tenant) { return "tenant" + std::to_string(tenant); }
  static RequestHead Head(int tenant) {
    return {.program = "sum", .tenant = TenantName(tenant), .key_set_id = TestKeySetId(tenant)};
  }
  std::unique_ptr<Call> Run(int tenant, uint64_t value) {
    return std::make_unique<Call>(*engine_, Head(tenant), value, tenant);
  }
  // Runs a request of tenant 1 on both instances of the only worker: each has its input from a
  // request from then on, and the keys are resident.
  void WarmBothInstances() {
    gate_->Close();
    const auto await_leased = [this](size_t count) {
      while (engine_->workers()[0]->instance_counts(served()).leased != count) {
        std::this_thread::yield();
      }
    };
    auto first = Run(1, 1);
    await_leased(1);
    auto second = Run(1, 2);
    await_leased(2);
    gate_->Open();
    EXPECT_TRUE(first->is_correct());
    EXPECT_TRUE(second->is_correct());
  }
  RequestLedger::Counts counts() { return engine_->ledger().Snapshot().at("sum"); }
  ServedProgram& served() { return **engine_->FindProgram("sum"); }

  // Of an engine at rest.
  cipherd::testing::MemoryFigures Memory() {
    return cipherd::testing::MemoryFiguresOf(*runtime_device_).value();
  }

  // Of "sum"; to be set before it starts.
  int output_count_ = 1;
  runtime::Device* runtime_device_ = nullptr;
  std::shared_ptr<Gate> gate_ = std::make_shared<Gate>();
  std::shared_ptr<TestProgram> program_;
  // The engine's threads read it until the engine has stopped: after the test's body.
  std::shared_ptr<const base::Clock> clock_;
  std::unique_ptr<Engine> engine_;
};

}  // namespace cipherd::engine::testing
