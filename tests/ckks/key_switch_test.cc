// Key switching with unusual partitions into digits, at every depth, on every device.
#include <algorithm>
#include <complex>
#include <string>
#include <tuple>

#include "core/ckks/evaluator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ckks/ckks_fixture.h"
#include "tests/testing/devices.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::testing {
namespace {

using ckks::Ciphertext;
using ckks::KeyId;
using Complex = std::complex<double>;
using Digits = std::vector<std::vector<int32_t>>;

// Four Q primes of 40, 40, 40 and 50 bits; P primes of 55 bits, as many as the largest digit needs.
ckks::ContextParameters ParametersWith(const Digits& digits) {
  ckks::ContextRequest request;
  request.log_n = 9;
  request.base_prime_bits = 50;
  request.depth_prime_bits = 40;
  request.max_depth = 3;
  request.p_prime_bits = 55;
  size_t largest = 0;
  for (const auto& digit : digits) largest = std::max(largest, digit.size());
  request.p_prime_count = static_cast<int>(largest);
  request.digit_count = 4;
  return WithDigits(
      ckks::MakeContextParameters(request, ckks::SecurityPolicy::kAllowInsecure).value(), digits);
}

struct Partition {
  std::string name;
  Digits digits;
};

class KeySwitchTest : public ::testing::TestWithParam<std::tuple<std::string, Partition>> {};

TEST_P(KeySwitchTest, RelinearizesAndRotatesAtEveryDepth) {
  const auto& [device, partition] = GetParam();
  const ckks::ContextParameters parameters = ParametersWith(partition.digits);
  ASSERT_OK_AND_ASSIGN(
      const auto party,
      Party::Make(device, parameters,
                  {KeyId::Relinearization(), KeyId::Rotation(5, parameters.slot_count())}));
  const Slots x = party->RandomSlots();
  const NoiseModel::State fresh =
      party->noise->EncryptSymmetric(party->noise->Encode(std::sqrt(2.0), party->scale()));
  const auto expect_close = [&](const Ciphertext& actual, const Slots& expected,
                                const NoiseModel::State& state) {
    ASSERT_OK_AND_ASSIGN(const Slots decrypted, party->Decrypt(actual));
    const double bound = (state.error + party->noise->Transform(state.message)) / actual.scale;
    EXPECT_LE(MaxDistance(decrypted, expected), bound);
    EXPECT_LT(bound, 1e-3);
  };
  for (int depth = 0; depth <= 3; ++depth) {
    SCOPED_TRACE(depth);
    ASSERT_OK_AND_ASSIGN(const Ciphertext a, party->Encrypt(x, depth));
    ASSERT_OK_AND_ASSIGN(const Ciphertext turned,
                         party->evaluator->Rotate(a, 5, party->table, *party->stream));
    expect_close(turned, Rotated(x, 5), party->noise->KeySwitch(fresh, depth));
    // A product does not fit the base prime alone.
    if (depth == 3) {
      ASSERT_OK_AND_ASSIGN(const Ciphertext last, party->evaluator->Square(a, *party->stream));
      EXPECT_THAT(party->evaluator->RelinearizeAndRescale(last, party->table, *party->stream),
                  StatusIs(absl::StatusCode::kInvalidArgument,
                           ::testing::HasSubstr("depth: expected below 3, got 3")));
      continue;
    }
    ASSERT_OK_AND_ASSIGN(const Ciphertext square, party->evaluator->Square(a, *party->stream));
    ASSERT_OK_AND_ASSIGN(const Ciphertext relinearized,
                         party->evaluator->Relinearize(square, party->table, *party->stream));
    const Slots expected = Map(x, x, std::multiplies<Complex>());
    const NoiseModel::State state =
        party->noise->KeySwitch(party->noise->Multiply(fresh, fresh), depth);
    expect_close(relinearized, expected, state);

    ASSERT_OK_AND_ASSIGN(const Ciphertext rescaled,
                         party->evaluator->Rescale(relinearized, *party->stream));
    ASSERT_OK_AND_ASSIGN(
        const Ciphertext merged,
        party->evaluator->RelinearizeAndRescale(square, party->table, *party->stream));
    EXPECT_EQ(merged.depth, rescaled.depth);
    EXPECT_EQ(merged.scale, rescaled.scale);
    expect_close(merged, expected, party->noise->Rescale(state, depth, 2));
  }
}

INSTANTIATE_TEST_SUITE_P(
    DevicesAndDigits, KeySwitchTest,
    ::testing::Combine(
        ::testing::ValuesIn(DevicesUnderTest()),
        ::testing::Values(Partition{"one", {{0, 1, 2, 3}}}, Partition{"each", {{0}, {1}, {2}, {3}}},
                          Partition{"interleaved", {{0, 2}, {1, 3}}},
                          // The second digit is empty from depth 2 on, between others.
                          Partition{"scattered", {{3}, {0, 1}, {2}}},
                          Partition{"uneven", {{0, 3}, {1}, {2}}})),
    [](const auto& info) { return std::get<0>(info.param) + "_" + std::get<1>(info.param).name; });

}  // namespace
}  // namespace cipherd::testing
