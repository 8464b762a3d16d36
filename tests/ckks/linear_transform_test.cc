#include "core/ckks/linear_transform.h"

#include <algorithm>
#include <complex>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ckks/ckks_fixture.h"
#include "tests/testing/devices.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::testing {
namespace {

using ckks::BsgsPlan;
using ckks::Ciphertext;
using ckks::KeyId;
using ckks::Plaintext;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Complex = std::complex<double>;

TEST(BsgsPlanTest, SplitsOffsetsBySpan) {
  ASSERT_OK_AND_ASSIGN(const BsgsPlan plan, BsgsPlan::Make({9, 0, 3, 4, 7}, 16, 4));
  EXPECT_THAT(plan.BabySteps(), ElementsAre(1, 3));
  EXPECT_THAT(plan.GiantSteps(), ElementsAre(4, 8));
  EXPECT_EQ(plan.giants().at(4).size(), 2u);
  EXPECT_THAT(plan.Keys(), ElementsAre(KeyId::Rotation(1, 16), KeyId::Rotation(3, 16),
                                       KeyId::Rotation(4, 16), KeyId::Rotation(8, 16)));
}

// A step that is both baby and giant needs its key once.
TEST(BsgsPlanTest, ChoosesTheLeastSpanOfFewestRotations) {
  secret::Random random = secret::Random::FromSeedForTesting(5);
  for (int64_t slots : {8, 16, 64}) {
    for (int round = 0; round < 20; ++round) {
      std::set<int64_t> offsets;
      const int count = 1 + static_cast<int>(random.NextUint64() % static_cast<uint64_t>(slots));
      for (int i = 0; i < count; ++i) {
        offsets.insert(static_cast<int64_t>(random.NextUint64() % static_cast<uint64_t>(slots)));
      }
      const std::vector<int64_t> list(offsets.begin(), offsets.end());
      ASSERT_OK_AND_ASSIGN(const BsgsPlan chosen, BsgsPlan::Make(list, slots, 0));
      const auto rotations = [](const BsgsPlan& plan) {
        return plan.BabySteps().size() + plan.GiantSteps().size();
      };
      for (int64_t span = 1; span <= slots; ++span) {
        ASSERT_OK_AND_ASSIGN(const BsgsPlan other, BsgsPlan::Make(list, slots, span));
        if (span < chosen.baby_span()) {
          EXPECT_GT(rotations(other), rotations(chosen));
        } else {
          EXPECT_GE(rotations(other), rotations(chosen));
        }
      }
    }
  }
}

TEST(BsgsPlanTest, RefusesBadOffsets) {
  const auto refused = [](const std::string& message) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message));
  };
  EXPECT_THAT(BsgsPlan::Make({}, 8, 0), refused("expected at least 1 diagonal"));
  EXPECT_THAT(BsgsPlan::Make({8}, 8, 0), refused("numbers in [0, 8), got 8"));
  EXPECT_THAT(BsgsPlan::Make({-1}, 8, 0), refused("numbers in [0, 8), got -1"));
  EXPECT_THAT(BsgsPlan::Make({3, 3}, 8, 0), refused("got 3 twice"));
  EXPECT_THAT(BsgsPlan::Make({3}, 8, -1), refused("baby_span"));
  EXPECT_THAT(BsgsPlan::Make({3}, 0, 0), refused("slot_count"));
}

class LinearTransformTest : public ::testing::TestWithParam<std::string> {
 protected:
  // Applies the matrix with these diagonals, and expects the product in binary64. Bounds as in
  // noise_model.h, with the largest path through the plan: each term is a baby rotation times a
  // diagonal, each inner sum is switched once more, and sums add.
  void ExpectProduct(const std::vector<int64_t>& offsets, int64_t span, int depth) {
    SCOPED_TRACE(::testing::Message() << offsets.size() << " diagonals, span " << span);
    const ckks::ContextParameters parameters = SmallParameters(7);
    const int64_t slots = parameters.slot_count();
    ASSERT_OK_AND_ASSIGN(const BsgsPlan plan, BsgsPlan::Make(offsets, slots, span));
    ASSERT_OK_AND_ASSIGN(const auto party, Party::Make(GetParam(), parameters, plan.Keys()));
    const Slots x = party->RandomSlots();
    Slots expected(x.size());
    std::map<int64_t, Plaintext> diagonals;
    for (const auto& [giant, terms] : plan.giants()) {
      for (const BsgsPlan::Term& term : terms) {
        const Slots diagonal = party->RandomSlots();
        const Slots turned = Rotated(x, term.offset);
        for (size_t j = 0; j < x.size(); ++j) expected[j] += diagonal[j] * turned[j];
        ASSERT_OK_AND_ASSIGN(diagonals[term.offset],
                             party->Encode(Rotated(diagonal, -giant), depth, party->scale()));
      }
    }
    ASSERT_OK_AND_ASSIGN(const Ciphertext a, party->Encrypt(x, depth));
    ASSERT_OK_AND_ASSIGN(
        const Ciphertext out,
        ApplyLinearTransform(*party->evaluator, plan, diagonals, a, party->table, *party->stream));
    EXPECT_EQ(out.depth, depth);
    EXPECT_EQ(out.scale, a.scale * party->scale());

    const NoiseModel& noise = *party->noise;
    const NoiseModel::State encoded = noise.Encode(std::sqrt(2.0), party->scale());
    const NoiseModel::State term =
        noise.Multiply(noise.KeySwitch(noise.EncryptSymmetric(encoded), depth), encoded);
    NoiseModel::State sum;
    for (size_t i = 0; i < offsets.size(); ++i) sum = noise.Add(sum, term);
    for (size_t g = 0; g < plan.giants().size(); ++g) sum = noise.KeySwitch(sum, depth);
    ASSERT_OK_AND_ASSIGN(const Slots decrypted, party->Decrypt(out));
    const double bound = (sum.error + noise.Transform(sum.message)) / out.scale;
    EXPECT_LE(MaxDistance(decrypted, expected), bound);
    EXPECT_LT(bound, 1e-3);
  }
};

TEST_P(LinearTransformTest, EqualsTheMatrixProduct) {
  std::vector<int64_t> all(64);
  for (int64_t t = 0; t < 64; ++t) all[t] = t;
  ExpectProduct(all, 0, 0);
  ExpectProduct(all, 8, 2);
  ExpectProduct({0, 1, 2, 3, 8, 9, 60, 63}, 4, 1);
  ExpectProduct({5, 21, 37}, 16, 0);
}

TEST_P(LinearTransformTest, DegenerateSpans) {
  // Only the main diagonal: no rotation. Only baby steps. Only giant steps, none of them 0.
  ExpectProduct({0}, 0, 0);
  ExpectProduct({0, 1, 5}, 64, 0);
  ExpectProduct({3, 4, 50}, 1, 0);
}

INSTANTIATE_TEST_SUITE_P(Devices, LinearTransformTest, ::testing::ValuesIn(DevicesUnderTest()),
                         DeviceParamName);

}  // namespace
}  // namespace cipherd::testing
