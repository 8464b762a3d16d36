// Every operation gives the same words on every device, with either arithmetic, fused or composed,
// as on the CPU device with integers.
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

using ckks::KernelChoice;
using kernels::Arithmetic;

struct Case {
  ckks::ContextParameters parameters;
  // Batches of so many items; 0 for none.
  int batch = 0;
};

// Words of every operation's result by name, on a fresh device.
absl::StatusOr<std::map<std::string, std::vector<uint64_t>>> WordsOf(const std::string& device,
                                                                     const Case& c,
                                                                     const KernelChoice& choice) {
  CIPHERD_ASSIGN_OR_RETURN(
      const auto party, Party::Make(device, c.parameters, ScheduleKeys(c.parameters.slot_count()),
                                    /*seed=*/1, choice));
  const auto encrypt = [&]() -> absl::StatusOr<ckks::Ciphertext> {
    if (c.batch == 0) return party->Encrypt(party->RandomSlots(), 0);
    std::vector<Slots> items;
    for (int i = 0; i < c.batch; ++i) items.push_back(party->RandomSlots());
    return party->EncryptBatch(items, 0);
  };
  CIPHERD_ASSIGN_OR_RETURN(const auto a, encrypt());
  CIPHERD_ASSIGN_OR_RETURN(const auto b, encrypt());
  CIPHERD_ASSIGN_OR_RETURN(const auto p, party->Encode(party->RandomSlots(), 0, party->scale()));
  CIPHERD_ASSIGN_OR_RETURN(
      const auto p_over_qp,
      party->Encode(party->RandomSlots(), 0, party->scale(), value::ModulusBasis::kQP));
  CIPHERD_ASSIGN_OR_RETURN(const auto results, RunEveryOperation(*party, a, b, p, p_over_qp));
  std::map<std::string, std::vector<uint64_t>> words;
  for (const auto& [name, result] : results) {
    CIPHERD_ASSIGN_OR_RETURN(words[name], party->Words(result.data));
  }
  return words;
}

class DeviceAgreementTest : public ::testing::TestWithParam<std::string> {
 protected:
  // Compares every choice of kernels that the parameters allow.
  void ExpectAgreement(const Case& c) {
    SCOPED_TRACE(::testing::Message() << "log_n " << c.parameters.log_n << ", digits "
                                      << c.parameters.digits.size() << ", batch " << c.batch);
    ASSERT_OK_AND_ASSIGN(const auto expected, WordsOf("cpu", c, {Arithmetic::kInteger, false}));
    EXPECT_EQ(expected.size(), 22u);
    std::vector<Arithmetic> arithmetics = {Arithmetic::kInteger};
    if (c.parameters.q_primes.back() >> 50 == 0 && c.parameters.p_primes.front() >> 50 == 0) {
      arithmetics.push_back(Arithmetic::kFma);
    }
    for (const Arithmetic arithmetic : arithmetics) {
      // Only CUDA has fused steps.
      for (const bool fused : {false, true}) {
        if (fused && GetParam() != "cuda") continue;
        SCOPED_TRACE(::testing::Message() << (arithmetic == Arithmetic::kFma ? "fma" : "integer")
                                          << (fused ? ", fused" : ", composed"));
        ASSERT_OK_AND_ASSIGN(const auto actual, WordsOf(GetParam(), c, {arithmetic, fused}));
        for (const auto& [name, words] : expected) EXPECT_EQ(actual.at(name), words) << name;
      }
    }
  }
};

TEST_P(DeviceAgreementTest, EveryOperationEqualsTheCpuBitForBit) {
  for (const ckks::ContextParameters& parameters :
       {SmallParameters(5), SmallParameters(12), FmaParameters(6),
        WithDigits(SmallParameters(8), {{1, 2}, {0}, {3}})}) {
    ExpectAgreement({parameters});
  }
}

// Degrees of the transforms in two passes: their conversions are part of a column pass up to three
// source limbs, and launches of their own beyond.
TEST_P(DeviceAgreementTest, FusedStepsEqualTheCpuBitForBit) {
  ExpectAgreement({FmaParameters(13)});
  ExpectAgreement({SmallParameters(13), /*batch=*/2});
  ExpectAgreement({WithDigits(FmaParameters(13), {{3}, {0, 1}, {2}}), /*batch=*/3});
  ExpectAgreement({WithDigits(FmaParameters(13, /*p_count=*/5), {{0, 1, 2, 3}})});
  if (GetParam() == "cuda") {
    ExpectAgreement({FmaParameters(14), /*batch=*/2});
    ExpectAgreement({WithDigits(FmaParameters(15, /*p_count=*/4), {{0, 1, 2}, {3}})});
    ExpectAgreement({WithDigits(FmaParameters(16, /*p_count=*/4), {{1, 2, 3}, {0}})});
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceAgreementTest, ::testing::ValuesIn(DevicesUnderTest()),
                         DeviceParamName);

}  // namespace
}  // namespace cipherd::testing
