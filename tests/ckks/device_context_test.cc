#include "core/ckks/device_context.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/ring/rns_basis.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ckks/ckks_fixture.h"
#include "tests/testing/devices.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::ckks {
namespace {

using ::cipherd::testing::Party;
using ::cipherd::testing::SmallParameters;
using ::cipherd::testing::WithDigits;
using ::testing::ElementsAre;

std::vector<int> Ids(const kernels::LimbPrimes& limbs) {
  return {limbs.prime.begin(), limbs.prime.begin() + limbs.count};
}

// For any partition and at every depth: the packed order holds each active Q limb once, and each
// digit is copied or converted to each active QP limb exactly once.
TEST(DeviceContextTest, ModUpPlansCoverEveryLimbOnce) {
  const std::vector<std::vector<std::vector<int32_t>>> partitions = {{{0, 1}, {2, 3}},
                                                                     {{0}, {1}, {2}, {3}},
                                                                     {{0, 2}, {1, 3}},
                                                                     {{3}, {0, 1}, {2}},
                                                                     {{1, 2}, {0, 3}}};
  for (const auto& digits : partitions) {
    const ContextParameters parameters = WithDigits(SmallParameters(4), digits);
    ASSERT_OK_AND_ASSIGN(const auto party, Party::Make("cpu", parameters, {}));
    for (int depth = 0; depth <= parameters.max_depth(); ++depth) {
      const ModUpPlan& plan = party->device_context->mod_up(depth);
      const int q_count = parameters.active_q_count(depth);
      const int first_id = parameters.dropped_count(depth);
      std::vector<int> packed(q_count, -1);
      for (const ModUpPlan::Gather& gather : plan.gathers) {
        for (int l = 0; l < gather.run.primes.count; ++l) {
          EXPECT_EQ(gather.run.primes.prime[l], first_id + gather.run.first + l);
          EXPECT_EQ(packed.at(gather.first_packed + l), -1);
          packed.at(gather.first_packed + l) = gather.run.primes.prime[l];
        }
      }
      std::multiset<int> key_digits;
      for (const DigitLift& lift : plan.digits) {
        key_digits.insert(lift.key_digit);
        std::vector<int> active;
        for (int32_t id : digits[lift.key_digit]) {
          if (id >= first_id) active.push_back(id);
        }
        EXPECT_EQ(std::vector<int>(packed.begin() + lift.first_packed,
                                   packed.begin() + lift.first_packed + lift.source_count),
                  active);
        std::vector<int> covered(q_count + parameters.p_count(), 0);
        const auto cover = [&](const LimbRun& run) {
          for (int l = 0; l < run.primes.count; ++l) {
            EXPECT_EQ(run.primes.prime[l], first_id + run.first + l);
            ++covered.at(run.first + l);
          }
        };
        for (const LimbRun& run : lift.own) cover(run);
        for (const DigitLift::Target& target : lift.targets) {
          cover(target.run);
          EXPECT_EQ(target.conversion.source_count, lift.source_count);
          EXPECT_EQ(target.conversion.target_count, target.run.primes.count);
        }
        EXPECT_THAT(covered, ::testing::Each(1));
      }
      for (size_t d = 0; d < digits.size(); ++d) {
        const bool is_active = digits[d].back() >= first_id;
        EXPECT_EQ(key_digits.count(static_cast<int>(d)), is_active ? 1u : 0u);
      }
    }
  }
}

TEST(DeviceContextTest, ContiguousDigitsNeedOneGather) {
  ASSERT_OK_AND_ASSIGN(const auto party, Party::Make("cpu", SmallParameters(4), {}));
  for (int depth = 0; depth <= 3; ++depth) {
    EXPECT_EQ(party->device_context->mod_up(depth).gathers.size(), 1u);
  }
}

TEST(DeviceContextTest, DropsNameTheRightLimbs) {
  ASSERT_OK_AND_ASSIGN(const auto party, Party::Make("cpu", SmallParameters(4), {}));
  const DeviceContext& context = *party->device_context;
  EXPECT_THAT(Ids(context.q_limbs(1)), ElementsAre(1, 2, 3));
  EXPECT_THAT(Ids(context.qp_limbs(1)), ElementsAre(1, 2, 3, 4, 5));
  EXPECT_THAT(Ids(context.mod_down(1).dropped), ElementsAre(4, 5));
  EXPECT_THAT(Ids(context.mod_down(1).remaining), ElementsAre(1, 2, 3));
  EXPECT_EQ(context.mod_down(1).head_count, 0);
  EXPECT_EQ(context.mod_down(1).dropped_limb(0), 3);
  EXPECT_THAT(Ids(context.rescale(1).dropped), ElementsAre(1));
  EXPECT_THAT(Ids(context.rescale(1).remaining), ElementsAre(2, 3));
  EXPECT_EQ(context.rescale(1).head_count, 1);
  EXPECT_THAT(Ids(context.mod_down_rescale(1).dropped), ElementsAre(1, 4, 5));
  EXPECT_THAT(Ids(context.mod_down_rescale(1).remaining), ElementsAre(2, 3));
  EXPECT_EQ(context.mod_down_rescale(1).dropped_limb(0), 0);
  EXPECT_EQ(context.mod_down_rescale(1).dropped_limb(2), 4);
}

TEST(DeviceContextTest, ArithmeticOnDoublesNeedsPrimesBelowTwoToTheFifty) {
  const auto create = [](ContextParameters parameters) {
    return Party::Make("cpu", std::move(parameters), {}, /*seed=*/1,
                       {.arithmetic = kernels::Arithmetic::kFma});
  };
  EXPECT_OK(create(testing::FmaParameters(4)));
  EXPECT_THAT(create(SmallParameters(4)),
              testing::StatusIs(absl::StatusCode::kInvalidArgument,
                                ::testing::HasSubstr("arithmetic: expected integer")));
}

TEST(DeviceContextTest, TablesLiveInOneBlockOfTheDevice) {
  for (const std::string& param : testing::DevicesUnderTest()) {
    SCOPED_TRACE(param);
    ASSERT_OK_AND_ASSIGN(const auto device, testing::OpenTestDevice(param));
    ASSERT_OK_AND_ASSIGN(const auto stream, device->CreateStream("compute"));
    ASSERT_OK_AND_ASSIGN(const auto context,
                         Context::Create(SmallParameters(4), SecurityPolicy::kAllowInsecure));
    ASSERT_OK_AND_ASSIGN(const testing::MemoryFigures before, testing::MemoryFiguresOf(*device));
    {
      ASSERT_OK_AND_ASSIGN(const auto tables, DeviceContext::Create(context, *device, *stream));
      // The upload is done: its source is gone.
      ASSERT_OK_AND_ASSIGN(const bool idle, stream->Query());
      EXPECT_TRUE(idle);
      ASSERT_OK_AND_ASSIGN(const testing::MemoryFigures with, testing::MemoryFiguresOf(*device));
      EXPECT_GE(with.device_allocated_bytes - before.device_allocated_bytes, tables->table_bytes());
      // The rows on the device are the host's, but for the addresses.
      ASSERT_OK_AND_ASSIGN(const std::vector<ring::PrimeConstants> rows,
                           testing::Download<ring::PrimeConstants>(
                               tables->ring().primes, tables->ring().prime_count, *stream));
      const size_t n = static_cast<size_t>(context->parameters().ring_degree());
      for (size_t i = 0; i < rows.size(); ++i) {
        EXPECT_EQ(rows[i].q, context->prime(static_cast<int64_t>(i)));
        ASSERT_OK_AND_ASSIGN(const std::vector<uint64_t> powers,
                             testing::Download<uint64_t>(rows[i].psi_powers, n, *stream));
        const uint64_t* expected = context->ring().primes[i].psi_powers;
        EXPECT_EQ(powers, std::vector<uint64_t>(expected, expected + n));
      }
    }
    ASSERT_OK_AND_ASSIGN(const testing::MemoryFigures after, testing::MemoryFiguresOf(*device));
    EXPECT_EQ(after, before);
  }
}

}  // namespace
}  // namespace cipherd::ckks
