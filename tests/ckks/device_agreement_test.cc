// Every operation gives the same words on every device as on the CPU device.
#include <map>
#include <string>
#include <vector>

#include "core/base/status_macros.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ckks/ckks_fixture.h"
#include "tests/ckks/schedule.h"
#include "tests/testing/devices.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::testing {
namespace {

// Words of every operation's result by name, on a fresh device.
absl::StatusOr<std::map<std::string, std::vector<uint64_t>>> WordsOf(
    const std::string& device, const ckks::ContextParameters& parameters) {
  CIPHERD_ASSIGN_OR_RETURN(const auto party,
                           Party::Make(device, parameters, ScheduleKeys(parameters.slot_count())));
  CIPHERD_ASSIGN_OR_RETURN(const auto a, party->Encrypt(party->RandomSlots(), 0));
  CIPHERD_ASSIGN_OR_RETURN(const auto b, party->Encrypt(party->RandomSlots(), 0));
  CIPHERD_ASSIGN_OR_RETURN(const auto p, party->Encode(party->RandomSlots(), 0, party->scale()));
  CIPHERD_ASSIGN_OR_RETURN(const auto results, RunEveryOperation(*party, a, b, p));
  std::map<std::string, std::vector<uint64_t>> words;
  for (const auto& [name, result] : results) {
    CIPHERD_ASSIGN_OR_RETURN(words[name], party->Words(result.data));
  }
  return words;
}

class DeviceAgreementTest : public ::testing::TestWithParam<std::string> {};

TEST_P(DeviceAgreementTest, EveryOperationEqualsTheCpuBitForBit) {
  for (const ckks::ContextParameters& parameters :
       {SmallParameters(5), SmallParameters(12),
        WithDigits(SmallParameters(8), {{1, 2}, {0}, {3}})}) {
    SCOPED_TRACE(parameters.log_n);
    ASSERT_OK_AND_ASSIGN(const auto expected, WordsOf("cpu", parameters));
    ASSERT_OK_AND_ASSIGN(const auto actual, WordsOf(GetParam(), parameters));
    EXPECT_EQ(expected.size(), 20u);
    for (const auto& [name, words] : expected) EXPECT_EQ(actual.at(name), words) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceAgreementTest, ::testing::ValuesIn(DevicesUnderTest()),
                         DeviceParamName);

}  // namespace
}  // namespace cipherd::testing
