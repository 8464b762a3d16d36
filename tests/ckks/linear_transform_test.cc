#include "core/ckks/linear_transform.h"

#include <algorithm>
#include <complex>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/ckks/sum_of_rotations.h"
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

// A giant step counts as three baby steps.
TEST(BsgsPlanTest, ChoosesTheLeastSpanOfTheLeastCost) {
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
      const auto cost = [](const BsgsPlan& plan) {
        return plan.BabySteps().size() + 3 * plan.GiantSteps().size();
      };
      for (int64_t span = 1; span <= slots; ++span) {
        ASSERT_OK_AND_ASSIGN(const BsgsPlan other, BsgsPlan::Make(list, slots, span));
        if (span < chosen.baby_span()) {
          EXPECT_GT(cost(other), cost(chosen));
        } else {
          EXPECT_GE(cost(other), cost(chosen));
        }
      }
    }
  }
}

TEST(BsgsPlanTest, HoistsTwiceWhereFewerPolynomialsAreDivided) {
  const auto basis = [](const std::vector<int64_t>& offsets, int64_t span) {
    return BsgsPlan::Make(offsets, 64, span)->diagonal_basis();
  };
  constexpr auto kQ = value::ModulusBasis::kQ;
  constexpr auto kQP = value::ModulusBasis::kQP;
  // No rotation; baby steps alone, two polynomials each or two for all; giant steps alone.
  EXPECT_EQ(basis({0}, 0), kQ);
  EXPECT_EQ(basis({0, 5}, 64), kQ);
  EXPECT_EQ(basis({0, 1, 5}, 64), kQP);
  EXPECT_EQ(basis({3, 4, 50}, 1), kQ);
  // One baby step beside one giant step: 2 + 2 against 1 + 2. Beside two: 2 + 2 against 2 + 2.
  EXPECT_EQ(basis({0, 1, 4, 5}, 4), kQP);
  EXPECT_EQ(basis({0, 1, 4, 5, 8}, 4), kQ);
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
  // diagonal, each inner sum is switched once more, and sums add. Double hoisting rounds less
  // often, after the products.
  void ExpectProduct(const std::vector<int64_t>& offsets, int64_t span, int depth,
                     const ckks::ContextParameters& parameters = SmallParameters(7)) {
    SCOPED_TRACE(::testing::Message() << offsets.size() << " diagonals, span " << span << ", log_n "
                                      << parameters.log_n << ", depth " << depth);
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
        ASSERT_OK_AND_ASSIGN(
            diagonals[term.offset],
            party->Encode(Rotated(diagonal, -giant), depth, party->scale(), plan.diagonal_basis()));
      }
    }
    ASSERT_OK_AND_ASSIGN(const Ciphertext a, party->Encrypt(x, depth));
    ASSERT_OK_AND_ASSIGN(
        const Ciphertext out,
        ApplyLinearTransform(*party->evaluator, plan, diagonals, a, party->table, *party->stream));
    EXPECT_EQ(out.depth, depth);
    EXPECT_EQ(out.scale, a.scale * party->scale());
    EXPECT_EQ(out.data.shape(), a.data.shape());

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

std::vector<int64_t> Offsets(int64_t count) {
  std::vector<int64_t> offsets(count);
  for (int64_t t = 0; t < count; ++t) offsets[t] = t;
  return offsets;
}

TEST_P(LinearTransformTest, EqualsTheMatrixProduct) {
  ExpectProduct(Offsets(64), 0, 0);
  ExpectProduct(Offsets(64), 8, 2);
  ExpectProduct({0, 1, 2, 3, 8, 9, 60, 63}, 4, 1);
  ExpectProduct({5, 21, 37}, 16, 0);
}

TEST_P(LinearTransformTest, DegenerateSpans) {
  // Only the main diagonal: no rotation. Only baby steps. Only giant steps, none of them 0.
  ExpectProduct({0}, 0, 0);
  ExpectProduct({0, 1, 5}, 64, 0);
  ExpectProduct({0, 5}, 64, 0);
  ExpectProduct({3, 4, 50}, 1, 0);
  // Double hoisting without the baby step 0, and without the giant step 0.
  ExpectProduct({1, 2, 3}, 64, 0);
  ExpectProduct({9, 10, 17, 18, 19}, 8, 0);
}

// More baby steps, and more giant steps, than one launch takes.
TEST_P(LinearTransformTest, ManySteps) {
  ExpectProduct(Offsets(64), 32, 0);
  ExpectProduct(Offsets(60), 6, 0);
}

TEST_P(LinearTransformTest, DegreesAndDigits) {
  const std::vector<int64_t> offsets = {0, 1, 2, 3, 4, 5, 6, 7};
  ExpectProduct(offsets, 4, 2);
  ExpectProduct(offsets, 4, 0, SmallParameters(5));
  ExpectProduct(offsets, 4, 1, SmallParameters(10));
  ExpectProduct(offsets, 4, 0, FmaParameters(8));
  ExpectProduct(offsets, 4, 0, WithDigits(SmallParameters(8), {{1, 2}, {0}, {3}}));
  ExpectProduct(offsets, 4, 2, WithDigits(SmallParameters(8), {{1, 2}, {0}, {3}}));
  // One prime in P, and one digit of all primes.
  ckks::ContextParameters one = SmallParameters(7);
  one.p_primes.pop_back();
  ExpectProduct(offsets, 4, 0, WithDigits(one, {{0}, {1}, {2}, {3}}));
  ExpectProduct(offsets, 4, 0, WithDigits(FmaParameters(7, 5), {{0, 1, 2, 3}}));
}

TEST_P(LinearTransformTest, RefusesDiagonalsOfTheOtherBasisAndMissingKeys) {
  const ckks::ContextParameters parameters = SmallParameters(7);
  ASSERT_OK_AND_ASSIGN(const BsgsPlan twice, BsgsPlan::Make({0, 1, 4, 5}, 64, 4));
  ASSERT_OK_AND_ASSIGN(const BsgsPlan once, BsgsPlan::Make({0, 1, 4, 5, 8}, 64, 4));
  std::vector<KeyId> keys = once.Keys();
  ASSERT_OK_AND_ASSIGN(const auto party, Party::Make(GetParam(), parameters, keys));
  ASSERT_OK_AND_ASSIGN(const Ciphertext a, party->Encrypt(party->RandomSlots(), 0));
  const Slots slots = party->RandomSlots();
  ASSERT_OK_AND_ASSIGN(const Plaintext q, party->Encode(slots, 0, party->scale()));
  ASSERT_OK_AND_ASSIGN(const Plaintext qp,
                       party->Encode(slots, 0, party->scale(), value::ModulusBasis::kQP));
  const auto apply = [&](const BsgsPlan& plan, const Plaintext& p, const ckks::KeyTable& table) {
    return ApplyLinearTransform(*party->evaluator, plan, {{0, p}, {1, p}, {4, p}, {5, p}, {8, p}},
                                a, table, *party->stream)
        .status();
  };
  EXPECT_OK(apply(twice, qp, party->table));
  EXPECT_OK(apply(once, q, party->table));
  EXPECT_THAT(apply(twice, q, party->table),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("diagonals[0]: basis: expected QP, got Q; encode it for that")));
  EXPECT_THAT(apply(once, qp, party->table),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("diagonals[0]: basis: expected Q, got QP")));
  EXPECT_THAT(party->evaluator->MultiplyPlain(a, qp, *party->stream),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected Q, got QP")));
  ckks::KeyTable fewer = party->table;
  fewer.layout = ckks::KeyLayout({KeyId::Rotation(1, 64)});
  EXPECT_THAT(apply(twice, qp, fewer),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("rotation(4)")));
}

// Steps of any sign, 0 and more than a launch takes; each rotation switched once, and one rounding.
TEST_P(LinearTransformTest, SumsOfRotations) {
  const ckks::ContextParameters parameters = SmallParameters(7);
  std::vector<int64_t> many = Offsets(20);
  std::vector<KeyId> keys;
  for (int64_t step = 1; step < 20; ++step) keys.push_back(KeyId::Rotation(step, 64));
  keys.push_back(KeyId::Rotation(-5, 64));
  ASSERT_OK_AND_ASSIGN(const auto party, Party::Make(GetParam(), parameters, keys));
  const Slots x = party->RandomSlots();
  for (const std::vector<int64_t>& steps :
       {std::vector<int64_t>{3}, {0, 64, -5, 2, 2}, {0}, many}) {
    for (int depth : {0, 2}) {
      ASSERT_OK_AND_ASSIGN(const Ciphertext a, party->Encrypt(x, depth));
      ASSERT_OK_AND_ASSIGN(const Ciphertext out, SumOfRotations(*party->evaluator, a, steps,
                                                                party->table, *party->stream));
      EXPECT_EQ(out.depth, depth);
      EXPECT_EQ(out.scale, a.scale);
      const NoiseModel& noise = *party->noise;
      const NoiseModel::State one = noise.KeySwitch(
          noise.EncryptSymmetric(noise.Encode(std::sqrt(2.0), party->scale())), depth);
      Slots expected(x.size());
      NoiseModel::State sum;
      for (int64_t step : steps) {
        expected = Map(expected, Rotated(x, step), std::plus<Complex>());
        sum = noise.Add(sum, one);
      }
      ASSERT_OK_AND_ASSIGN(const Slots decrypted, party->Decrypt(out));
      EXPECT_LE(MaxDistance(decrypted, expected),
                (sum.error + noise.Transform(sum.message)) / out.scale);
    }
  }
  ASSERT_OK_AND_ASSIGN(const Ciphertext a, party->Encrypt(x, 0));
  const auto sum_of = [&](const std::vector<int64_t>& steps) {
    return SumOfRotations(*party->evaluator, a, steps, party->table, *party->stream).status();
  };
  EXPECT_THAT(sum_of({}), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("steps")));
  EXPECT_THAT(sum_of({1, 20}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("rotation(20)")));
}

INSTANTIATE_TEST_SUITE_P(Devices, LinearTransformTest, ::testing::ValuesIn(DevicesUnderTest()),
                         DeviceParamName);

}  // namespace
}  // namespace cipherd::testing
