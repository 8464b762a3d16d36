#include "server/engine/placement.h"

#include <optional>
#include <vector>

#include "gtest/gtest.h"

namespace cipherd::engine {
namespace {

constexpr absl::Duration kRun = absl::Milliseconds(2);
constexpr absl::Duration kLoad = absl::Milliseconds(10);

DeviceLoad Idle(bool has_keys) {
  return {.is_serving = true, .can_start = true, .has_keys = has_keys};
}
DeviceLoad Running(int batches, bool has_keys) {
  DeviceLoad load = Idle(has_keys);
  load.in_flight = batches;
  load.backlog = batches * kRun;
  return load;
}
// Without an idle instance.
DeviceLoad Full(int batches, bool has_keys) {
  DeviceLoad load = Running(batches, has_keys);
  load.can_start = false;
  return load;
}
DeviceLoad Out() { return {.has_keys = true}; }

Demand Asks(int batches_behind = 0, absl::Duration waited = absl::ZeroDuration()) {
  return {.load_cost = kLoad, .run_time = kRun, .batches_behind = batches_behind, .waited = waited};
}

std::optional<size_t> Choose(const std::vector<DeviceLoad>& devices,
                             const Demand& demand = Asks()) {
  return ChooseDevice(devices, demand);
}

TEST(Placement, NoneCanWhereNoneServes) {
  EXPECT_EQ(Choose({}), std::nullopt);
  EXPECT_EQ(Choose({Out(), Out()}), std::nullopt);
  // Serving, but without room for keys that are not there.
  EXPECT_EQ(Choose({Full(1, false), Full(0, false)}), std::nullopt);
}

TEST(Placement, ARequestRunsWhereItsKeysAre) {
  EXPECT_EQ(Choose({Idle(false), Idle(true)}), 1u);
  EXPECT_EQ(Choose({Idle(true), Idle(false)}), 0u);
  // Though that device has more to do, as long as it is not a copy's worth.
  EXPECT_EQ(Choose({Idle(false), Running(4, true)}), 1u);
}

TEST(Placement, KeysThatAreNowhereGoToTheLeastLoadedDevice) {
  EXPECT_EQ(Choose({Running(2, false), Running(1, false), Running(3, false)}), 1u);
  EXPECT_EQ(Choose({Full(1, false), Running(5, false)}), 1u);
}

TEST(Placement, OfEquallyLoadedDevicesTheOneWithFewerKeysThenTheFirst) {
  DeviceLoad crowded = Idle(false);
  crowded.key_bytes = 100;
  EXPECT_EQ(Choose({crowded, Idle(false)}), 1u);
  EXPECT_EQ(Choose({Idle(false), Idle(false)}), 0u);
  // Where nothing has run yet, and nobody knows how long it takes.
  DeviceLoad busy = Idle(true);
  busy.in_flight = 1;
  EXPECT_EQ(Choose({busy, Idle(true)}), 1u);
}

TEST(Placement, KeysThatAreInTwoPlacesSpreadTheWork) {
  EXPECT_EQ(Choose({Running(2, true), Running(1, true)}), 1u);
  EXPECT_EQ(Choose({Full(1, true), Running(1, true)}, Asks(/*batches_behind=*/1)), 1u);
}

TEST(Placement, ADeviceThatIsBehindByMoreThanACopyLosesARequestToAnother) {
  EXPECT_EQ(Choose({Running(5, true), Idle(false)}), 0u) << "as much as a copy";
  EXPECT_EQ(Choose({Running(6, true), Idle(false)}), 1u);
}

TEST(Placement, WhatItsTenantHasWaitingMakesADeviceBehindToo) {
  EXPECT_EQ(Choose({Full(3, true), Idle(false)}, Asks(/*batches_behind=*/1)), 0u);
  EXPECT_EQ(Choose({Full(3, true), Idle(false)}, Asks(/*batches_behind=*/3)), 1u);
  // Not where the request itself could start at once.
  EXPECT_EQ(Choose({Running(3, true), Idle(false)}, Asks(/*batches_behind=*/3)), 0u);
}

TEST(Placement, AFullDeviceWithTheKeysIsWaitedForNoLongerThanACopyTakes) {
  const std::vector<DeviceLoad> devices = {Full(1, true), Idle(false)};
  EXPECT_EQ(Choose(devices, Asks(0, absl::ZeroDuration())), 0u);
  EXPECT_EQ(Choose(devices, Asks(0, kLoad - absl::Nanoseconds(1))), 0u);
  EXPECT_EQ(Choose(devices, Asks(0, kLoad)), 1u);
}

TEST(Placement, AnIdleDeviceNeverWaitsForAnotherWhereNoKeysAreRead) {
  Demand demand = Asks();
  demand.load_cost = absl::ZeroDuration();
  EXPECT_EQ(Choose({Full(1, true), Running(2, true)}, demand), 1u);
  EXPECT_EQ(Choose({Running(1, true), Idle(true)}, demand), 1u);
}

TEST(Placement, ADeviceThatIsOutIsNotWaitedForThoughTheKeysAreThere) {
  EXPECT_EQ(Choose({Out(), Idle(false)}), 1u);
}

// Every device asks for itself: of those that can start one must say yes, or wait for no longer
// than a copy takes.
TEST(Placement, SomebodyWhoCanStartIsChosenInEveryCase) {
  const std::vector<DeviceLoad> kinds = {
      Idle(false),    Idle(true), Running(1, false), Running(1, true), Full(1, true), Full(9, true),
      Full(1, false), Out(),      Running(9, true),  Running(9, false)};
  for (const DeviceLoad& a : kinds) {
    for (const DeviceLoad& b : kinds) {
      for (const DeviceLoad& c : kinds) {
        const std::vector<DeviceLoad> devices = {a, b, c};
        const bool can_anybody = a.can_start || b.can_start || c.can_start;
        const std::optional<size_t> late = Choose(devices, Asks(0, kLoad));
        ASSERT_EQ(late.has_value(), can_anybody);
        if (late.has_value()) {
          EXPECT_TRUE(devices[*late].can_start);
        }
        const std::optional<size_t> early = Choose(devices, Asks());
        ASSERT_TRUE(early.has_value() || !can_anybody);
        if (early.has_value()) {
          EXPECT_TRUE(devices[*early].can_start || devices[*early].has_keys);
        }
      }
    }
  }
}

}  // namespace
}  // namespace cipherd::engine
