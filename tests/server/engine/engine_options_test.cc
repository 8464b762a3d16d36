#include "server/engine/engine_options.h"

#include <string>

#include "core/base/processor_count.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::engine {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;

TEST(EngineOptionsTest, EachNumberIsChecked) {
  EXPECT_OK(EngineOptions{}.Validate());
  for (int EngineOptions::*field :
       {&EngineOptions::workers, &EngineOptions::instances, &EngineOptions::queue_capacity}) {
    EngineOptions options;
    options.*field = 0;
    EXPECT_THAT(options.Validate(), StatusIs(absl::StatusCode::kInvalidArgument));
  }
}

TEST(EngineOptionsTest, TheSpinIsCheckedAndFollowsTheProcessorsUnlessItIsSet) {
  EngineOptions options;
  options.spin = absl::Nanoseconds(-1);
  EXPECT_THAT(options.Validate(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("engine.spin")));
  options.spin = absl::ZeroDuration();
  EXPECT_OK(options.Validate());
  EXPECT_EQ(options.WorkerSpin(), absl::ZeroDuration());
  options.spin.reset();
  options.workers = base::ProcessorCount();
  EXPECT_EQ(options.WorkerSpin(), absl::Microseconds(200));
  options.workers = base::ProcessorCount() / 4;
  if (options.workers > 0) {
    EXPECT_EQ(options.WorkerSpin(), absl::Milliseconds(5));
  }
}

TEST(EngineOptionsTest, EachBudgetOfKeysIsCheckedByItsName) {
  const struct {
    int64_t KeyOptions::*field;
    std::string name;
  } budgets[] = {{&KeyOptions::host_budget_bytes, "keys.host_budget_bytes"},
                 {&KeyOptions::device_budget_bytes, "keys.device_budget_bytes"},
                 {&KeyOptions::tenant_budget_bytes, "keys.tenant_budget_bytes"},
                 {&KeyOptions::file_budget_bytes, "keys.file_budget_bytes"}};
  for (const auto& [field, name] : budgets) {
    EngineOptions options;
    options.keys.*field = 0;
    EXPECT_THAT(options.Validate(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(name)));
  }
  EngineOptions options;
  options.keys.time_to_live = absl::ZeroDuration();
  EXPECT_THAT(options.Validate(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("keys.time_to_live")));
}

TEST(EngineOptionsTest, TheLargestSetIsOneThatEveryTierAndQuotaAdmits) {
  KeyOptions keys;
  keys.host_budget_bytes = 40;
  keys.device_budget_bytes = 30;
  EXPECT_EQ(keys.max_set_bytes(), 30);
  keys.tenant_budget_bytes = 20;
  EXPECT_EQ(keys.max_set_bytes(), 20);
  keys.file_budget_bytes = 10;
  EXPECT_EQ(keys.max_set_bytes(), 20) << "without files";
  keys.directory = "/keys";
  EXPECT_EQ(keys.max_set_bytes(), 10);
}

}  // namespace
}  // namespace cipherd::engine
