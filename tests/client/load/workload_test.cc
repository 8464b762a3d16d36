#include "client/load/workload.h"

#include <map>

#include "tests/client/load/load_fixture.h"

namespace cipherd::client {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;

using WorkloadTest = LoadTest;

TEST_F(WorkloadTest, EveryTenantHasKeysOfItsOwnAndGivesThemBack) {
  WorkloadOptions options = Options();
  options.tenants.assign(3, service_.ClientOptions());
  options.variants = 4;
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<Workload> workload, Workload::Prepare(options));
  EXPECT_EQ(workload->items().size(), 12u);
  EXPECT_EQ(service_.key_set_count(), 3);
  EXPECT_FALSE(HaveSameBytes(workload->items()[0].inputs, workload->items()[1].inputs));
  EXPECT_OK(workload->Release());
  EXPECT_EQ(service_.key_set_count(), 0);
  ASSERT_OK_AND_ASSIGN(workload, Workload::Prepare(options));
  workload.reset();
  EXPECT_EQ(service_.key_set_count(), 0) << "a workload that is dropped leaves keys behind";
}

TEST_F(WorkloadTest, ProgramsArePickedByTheirWeights) {
  WorkloadOptions options = Options();
  options.programs = {{.name = "echo", .weight = 1}, {.name = "echo", .weight = 3}};
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<Workload> workload, Workload::Prepare(options));
  std::mt19937_64 random(5);
  std::map<int, int> counts;
  constexpr int kPicks = 20000;
  for (int i = 0; i < kPicks; ++i) ++counts[workload->Pick(random).program];
  // Binomial with p = 3/4: five standard deviations.
  EXPECT_NEAR(counts[1], 0.75 * kPicks, 5 * std::sqrt(kPicks * 0.75 * 0.25));
}

TEST_F(WorkloadTest, ReferenceIsComparedWithTheExpectation) {
  WorkloadOptions options = Options();
  const Vectors ramp = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}};
  options.programs[0].inputs["x"] = ramp;
  options.programs[0].expected["y"] = ramp;
  EXPECT_OK(Workload::Prepare(options).status());

  options.programs[0].expected["y"][0][3] = 3.5;
  EXPECT_THAT(Workload::Prepare(options).status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("y[0][3]: expected 3.5")));
  EXPECT_EQ(service_.key_set_count(), 0);

  options.programs[0].expected = {{"z", ramp}};
  EXPECT_THAT(Workload::Prepare(options).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected['z']")));
}

TEST_F(WorkloadTest, WhatIsNoWorkloadIsRefused) {
  WorkloadOptions options = Options();
  options.programs[0].weight = 0;
  EXPECT_THAT(Workload::Prepare(options).status(), StatusIs(absl::StatusCode::kInvalidArgument));
  options = Options();
  options.tenants.clear();
  EXPECT_THAT(Workload::Prepare(options).status(), StatusIs(absl::StatusCode::kInvalidArgument));
  options = Options();
  options.programs[0].name = "none";
  EXPECT_THAT(Workload::Prepare(options).status(), StatusIs(absl::StatusCode::kNotFound));
}

}  // namespace
}  // namespace cipherd::client
