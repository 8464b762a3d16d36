// A scheduler with two programs on a clock of the test's.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/engine/scheduler.h"
#include "tests/server/engine/test_program.h"
#include "tests/testing/devices.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::engine::testing {

// Of each program's queue.
inline constexpr int kCapacity = 3;

// Claims what `accepts` accepts, in batches of one.
class OneByOne final : public Scheduler::Claimant {
 public:
  using Accepts = std::function<bool(const RequestPtr&)>;
  explicit OneByOne(Accepts accepts = [](const RequestPtr&) { return true; })
      : accepts_(std::move(accepts)) {}

  int BatchSize(const ServedProgram&, int count) override { return std::min(count, 1); }
  bool Claim(const RequestPtr& request) override { return accepts_(request); }
  void Unclaim(int) override {}
  void PrepareToTake() override { prepare_(); }

  void set_prepare(std::function<void()> prepare) { prepare_ = std::move(prepare); }

 private:
  const Accepts accepts_;
  std::function<void()> prepare_ = [] {};
};

class SchedulerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(device_, cipherd::testing::OpenTestDevice("cpu"));
    a_ = AddProgram("a");
    b_ = AddProgram("b");
  }

  std::shared_ptr<ServedProgram> AddProgram(const std::string& name,
                                            const ServingSettings& settings = {}) {
    auto program = std::make_shared<TestProgram>(name);
    auto trees = PinnedPool::Create(*program, 64, *device_).value();
    auto served = std::make_shared<ServedProgram>(program, std::move(trees), settings);
    scheduler_.AddProgram(*served, kCapacity);
    return served;
  }

  // A request that records how it ended.
  struct Tracked {
    RequestPtr request;
    std::shared_ptr<std::vector<absl::Status>> results;
  };
  Tracked Make(const std::shared_ptr<ServedProgram>& program,
               absl::Time deadline = absl::InfiniteFuture(), const std::string& tenant = "t") {
    auto request = std::make_shared<Request>(
        RequestHead{.program = program->info().name, .tenant = tenant, .deadline = deadline},
        program->info().name, ledger_, clock_);
    request->Grant(program, nullptr, *program->trees().TryLease());
    auto results = std::make_shared<std::vector<absl::Status>>();
    request->set_continuation(
        [results](const absl::Status& status) { results->push_back(status); });
    return {request, results};
  }

  RequestPtr TakeAny() {
    OneByOne any;
    return scheduler_.Take(quit_, any).front();
  }
  void EndQuietly(const RequestPtr& request) {
    request->Finish(request->state(), absl::CancelledError());
  }

  std::unique_ptr<runtime::Device> device_;
  base::FakeClock clock_;
  RequestLedger ledger_;
  Scheduler scheduler_{clock_};
  std::atomic<bool> quit_ = false;
  std::shared_ptr<ServedProgram> a_, b_;
};

}  // namespace cipherd::engine::testing
