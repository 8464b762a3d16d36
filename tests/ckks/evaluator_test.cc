// Every operation of the evaluator against plaintext arithmetic, within the bounds of
// noise_model.h, on every device.
#include "core/ckks/evaluator.h"

#include <complex>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ckks/ckks_fixture.h"
#include "tests/testing/devices.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::testing {
namespace {

using ckks::Ciphertext;
using ckks::KeyId;
using ckks::Plaintext;
using Complex = std::complex<double>;
using State = NoiseModel::State;

// Of RandomSlots.
const double kLargestSlot = std::sqrt(2.0);

class EvaluatorTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const ckks::ContextParameters parameters = SmallParameters();
    std::vector<KeyId> keys = {KeyId::Relinearization(), KeyId::Conjugation()};
    for (int64_t step : kSteps) keys.push_back(KeyId::Rotation(step, parameters.slot_count()));
    ASSERT_OK_AND_ASSIGN(party_, Party::Make(GetParam(), parameters, keys));
    x_ = party_->RandomSlots();
    y_ = party_->RandomSlots();
  }

  State Fresh(double scale) const {
    return party_->noise->EncryptSymmetric(party_->noise->Encode(kLargestSlot, scale));
  }
  State Fresh() const { return Fresh(party_->scale()); }

  // The decryption of `actual` is `expected` to within the error of `state`.
  void ExpectClose(const Ciphertext& actual, const Slots& expected, const State& state) {
    ASSERT_OK_AND_ASSIGN(const Slots decrypted, party_->Decrypt(actual));
    const double bound = (state.error + party_->noise->Transform(state.message)) / actual.scale;
    EXPECT_LE(MaxDistance(decrypted, expected), bound);
    // The bound says something: values are of magnitude 1.
    EXPECT_LT(bound, 1e-3);
  }

  static constexpr int64_t kSteps[] = {1, 3, 64, -1, -100};
  std::unique_ptr<Party> party_;
  Slots x_;
  Slots y_;
};

TEST_P(EvaluatorTest, AddsAndSubtractsAndNegates) {
  for (int depth : {0, 3}) {
    ASSERT_OK_AND_ASSIGN(const Ciphertext a, party_->Encrypt(x_, depth));
    ASSERT_OK_AND_ASSIGN(const Ciphertext b, party_->Encrypt(y_, depth));
    ASSERT_OK_AND_ASSIGN(const Ciphertext sum, party_->evaluator->Add(a, b, *party_->stream));
    ASSERT_OK_AND_ASSIGN(const Ciphertext difference,
                         party_->evaluator->Subtract(a, b, *party_->stream));
    ASSERT_OK_AND_ASSIGN(const Ciphertext negated, party_->evaluator->Negate(a, *party_->stream));
    const State state = party_->noise->Add(Fresh(), Fresh());
    ExpectClose(sum, Map(x_, y_, std::plus<Complex>()), state);
    ExpectClose(difference, Map(x_, y_, std::minus<Complex>()), state);
    ExpectClose(negated, Map(x_, std::negate<Complex>()), Fresh());
  }
}

TEST_P(EvaluatorTest, AddsCiphertextsOfTwoAndThreeComponents) {
  ASSERT_OK_AND_ASSIGN(const Ciphertext a, party_->Encrypt(x_, 0));
  ASSERT_OK_AND_ASSIGN(const Ciphertext three, party_->evaluator->Square(a, *party_->stream));
  ASSERT_OK_AND_ASSIGN(const Plaintext one,
                       party_->Encode(Slots(x_.size(), 1.0), 0, party_->scale()));
  ASSERT_OK_AND_ASSIGN(const Ciphertext two,
                       party_->evaluator->MultiplyPlain(a, one, *party_->stream));
  const State square = party_->noise->Multiply(Fresh(), Fresh());
  const State state = party_->noise->Add(
      square, party_->noise->Multiply(Fresh(), party_->noise->Encode(1, party_->scale())));
  const auto square_of = [](Complex v) { return v * v; };
  ASSERT_OK_AND_ASSIGN(Ciphertext out, party_->evaluator->Add(three, two, *party_->stream));
  ExpectClose(out, Map(x_, [&](Complex v) { return square_of(v) + v; }), state);
  ASSERT_OK_AND_ASSIGN(out, party_->evaluator->Add(two, three, *party_->stream));
  ExpectClose(out, Map(x_, [&](Complex v) { return square_of(v) + v; }), state);
  ASSERT_OK_AND_ASSIGN(out, party_->evaluator->Subtract(three, two, *party_->stream));
  ExpectClose(out, Map(x_, [&](Complex v) { return square_of(v) - v; }), state);
  ASSERT_OK_AND_ASSIGN(out, party_->evaluator->Subtract(two, three, *party_->stream));
  ExpectClose(out, Map(x_, [&](Complex v) { return v - square_of(v); }), state);
}

TEST_P(EvaluatorTest, AddsAndSubtractsPlaintexts) {
  ASSERT_OK_AND_ASSIGN(const Ciphertext a, party_->Encrypt(x_, 1));
  ASSERT_OK_AND_ASSIGN(const Plaintext b, party_->Encode(y_, 1, party_->scale()));
  const State state =
      party_->noise->Add(Fresh(), party_->noise->Encode(kLargestSlot, party_->scale()));
  ASSERT_OK_AND_ASSIGN(Ciphertext out, party_->evaluator->AddPlain(a, b, *party_->stream));
  ExpectClose(out, Map(x_, y_, std::plus<Complex>()), state);
  ASSERT_OK_AND_ASSIGN(out, party_->evaluator->SubtractPlain(a, b, *party_->stream));
  ExpectClose(out, Map(x_, y_, std::minus<Complex>()), state);
}

TEST_P(EvaluatorTest, MultipliesByPlaintexts) {
  for (int depth : {0, 2}) {
    ASSERT_OK_AND_ASSIGN(const Ciphertext a, party_->Encrypt(x_, depth));
    ASSERT_OK_AND_ASSIGN(const Plaintext b, party_->Encode(y_, depth, party_->scale()));
    ASSERT_OK_AND_ASSIGN(const Ciphertext out,
                         party_->evaluator->MultiplyPlain(a, b, *party_->stream));
    EXPECT_EQ(out.scale, party_->scale() * party_->scale());
    ExpectClose(
        out, Map(x_, y_, std::multiplies<Complex>()),
        party_->noise->Multiply(Fresh(), party_->noise->Encode(kLargestSlot, party_->scale())));
  }
}

TEST_P(EvaluatorTest, MultipliesWithThreeComponents) {
  ASSERT_OK_AND_ASSIGN(const Ciphertext a, party_->Encrypt(x_, 0));
  ASSERT_OK_AND_ASSIGN(const Ciphertext b, party_->Encrypt(y_, 0));
  const State state = party_->noise->Multiply(Fresh(), Fresh());
  ASSERT_OK_AND_ASSIGN(const Ciphertext product,
                       party_->evaluator->Multiply(a, b, *party_->stream));
  EXPECT_EQ(product.component_count(), 3);
  ExpectClose(product, Map(x_, y_, std::multiplies<Complex>()), state);
  ASSERT_OK_AND_ASSIGN(const Ciphertext square, party_->evaluator->Square(a, *party_->stream));
  ExpectClose(square, Map(x_, x_, std::multiplies<Complex>()), state);
}

TEST_P(EvaluatorTest, RelinearizesAtEveryDepth) {
  for (int depth = 0; depth < 3; ++depth) {
    ASSERT_OK_AND_ASSIGN(const Ciphertext a, party_->Encrypt(x_, depth));
    ASSERT_OK_AND_ASSIGN(const Ciphertext b, party_->Encrypt(y_, depth));
    ASSERT_OK_AND_ASSIGN(const Ciphertext product,
                         party_->evaluator->Multiply(a, b, *party_->stream));
    ASSERT_OK_AND_ASSIGN(const Ciphertext out,
                         party_->evaluator->Relinearize(product, party_->table, *party_->stream));
    EXPECT_EQ(out.component_count(), 2);
    ExpectClose(out, Map(x_, y_, std::multiplies<Complex>()),
                party_->noise->KeySwitch(party_->noise->Multiply(Fresh(), Fresh()), depth));
  }
}

TEST_P(EvaluatorTest, RescalesAtEveryDepthTwoAndThreeComponents) {
  for (int depth = 0; depth < 3; ++depth) {
    ASSERT_OK_AND_ASSIGN(const Ciphertext a, party_->Encrypt(x_, depth));
    ASSERT_OK_AND_ASSIGN(const Ciphertext square, party_->evaluator->Square(a, *party_->stream));
    ASSERT_OK_AND_ASSIGN(const Ciphertext two,
                         party_->evaluator->Relinearize(square, party_->table, *party_->stream));
    const State state = party_->noise->Multiply(Fresh(), Fresh());
    const Slots expected = Map(x_, x_, std::multiplies<Complex>());
    ASSERT_OK_AND_ASSIGN(const Ciphertext out3,
                         party_->evaluator->Rescale(square, *party_->stream));
    EXPECT_EQ(out3.depth, depth + 1);
    EXPECT_EQ(out3.scale, square.scale / party_->parameters().RescaleDivisor(depth));
    ExpectClose(out3, expected, party_->noise->Rescale(state, depth, 3));
    ASSERT_OK_AND_ASSIGN(const Ciphertext out2, party_->evaluator->Rescale(two, *party_->stream));
    ExpectClose(out2, expected,
                party_->noise->Rescale(party_->noise->KeySwitch(state, depth), depth, 2));
  }
}

TEST_P(EvaluatorTest, DropsToAnyDeeperDepthInEitherDomain) {
  ASSERT_OK_AND_ASSIGN(const Ciphertext a, party_->Encrypt(x_, 0));
  ASSERT_OK_AND_ASSIGN(const Ciphertext coefficients,
                       party_->evaluator->ToCoefficient(a, *party_->stream));
  for (int depth = 0; depth <= 3; ++depth) {
    ASSERT_OK_AND_ASSIGN(const Ciphertext out,
                         party_->evaluator->DropToDepth(a, depth, *party_->stream));
    EXPECT_EQ(out.scale, a.scale);
    ExpectClose(out, x_, Fresh());
    ASSERT_OK_AND_ASSIGN(const Ciphertext other,
                         party_->evaluator->DropToDepth(coefficients, depth, *party_->stream));
    ExpectClose(other, x_, Fresh());
  }
}

TEST_P(EvaluatorTest, DomainsRoundTripBitForBit) {
  ASSERT_OK_AND_ASSIGN(const Ciphertext a, party_->Encrypt(x_, 1));
  ASSERT_OK_AND_ASSIGN(const Ciphertext coefficients,
                       party_->evaluator->ToCoefficient(a, *party_->stream));
  ExpectClose(coefficients, x_, Fresh());
  ASSERT_OK_AND_ASSIGN(const Ciphertext back,
                       party_->evaluator->ToNtt(coefficients, *party_->stream));
  ASSERT_OK_AND_ASSIGN(const std::vector<uint64_t> before, party_->Words(a.data));
  ASSERT_OK_AND_ASSIGN(const std::vector<uint64_t> after, party_->Words(back.data));
  EXPECT_EQ(before, after);
}

TEST_P(EvaluatorTest, RotatesAndHoistedRotationsAreEqual) {
  for (int depth : {0, 1, 3}) {
    ASSERT_OK_AND_ASSIGN(const Ciphertext a, party_->Encrypt(x_, depth));
    ASSERT_OK_AND_ASSIGN(const ckks::HoistedCiphertext hoisted,
                         party_->evaluator->Hoist(a, *party_->stream));
    const State state = party_->noise->KeySwitch(Fresh(), depth);
    for (int64_t step : kSteps) {
      SCOPED_TRACE(step);
      ASSERT_OK_AND_ASSIGN(const Ciphertext out,
                           party_->evaluator->Rotate(a, step, party_->table, *party_->stream));
      ExpectClose(out, Rotated(x_, step), state);
      ASSERT_OK_AND_ASSIGN(
          const Ciphertext again,
          party_->evaluator->RotateHoisted(hoisted, step, party_->table, *party_->stream));
      ASSERT_OK_AND_ASSIGN(const std::vector<uint64_t> plain_words, party_->Words(out.data));
      ASSERT_OK_AND_ASSIGN(const std::vector<uint64_t> hoisted_words, party_->Words(again.data));
      EXPECT_EQ(plain_words, hoisted_words);
    }
  }
}

TEST_P(EvaluatorTest, RotationByMultiplesOfTheSlotCountCopiesWithoutKey) {
  ASSERT_OK_AND_ASSIGN(const Ciphertext a, party_->Encrypt(x_, 0));
  ASSERT_OK_AND_ASSIGN(const std::vector<uint64_t> expected, party_->Words(a.data));
  for (int64_t step : {int64_t{0}, party_->slot_count(), -2 * party_->slot_count()}) {
    ASSERT_OK_AND_ASSIGN(const Ciphertext out,
                         party_->evaluator->Rotate(a, step, ckks::KeyTable(), *party_->stream));
    EXPECT_NE(out.data.data(), a.data.data());
    ASSERT_OK_AND_ASSIGN(const std::vector<uint64_t> words, party_->Words(out.data));
    EXPECT_EQ(words, expected);
  }
}

TEST_P(EvaluatorTest, Conjugates) {
  ASSERT_OK_AND_ASSIGN(const Ciphertext a, party_->Encrypt(x_, 1));
  ASSERT_OK_AND_ASSIGN(const Ciphertext out,
                       party_->evaluator->Conjugate(a, party_->table, *party_->stream));
  ExpectClose(out, Map(x_, [](Complex v) { return std::conj(v); }),
              party_->noise->KeySwitch(Fresh(), 1));
}

TEST_P(EvaluatorTest, CircuitOfEveryDepthStaysWithinItsBound) {
  // ((x^2)^2)^2, which uses all three depths.
  ASSERT_OK_AND_ASSIGN(Ciphertext power, party_->Encrypt(x_, 0));
  State state = Fresh();
  Slots expected = x_;
  for (int depth = 0; depth < 3; ++depth) {
    ASSERT_OK_AND_ASSIGN(power, party_->evaluator->Square(power, *party_->stream));
    ASSERT_OK_AND_ASSIGN(power,
                         party_->evaluator->Relinearize(power, party_->table, *party_->stream));
    ASSERT_OK_AND_ASSIGN(power, party_->evaluator->Rescale(power, *party_->stream));
    state = party_->noise->Rescale(
        party_->noise->KeySwitch(party_->noise->Multiply(state, state), depth), depth, 2);
    expected = Map(expected, expected, std::multiplies<Complex>());
  }
  ExpectClose(power, expected, state);
}

INSTANTIATE_TEST_SUITE_P(Devices, EvaluatorTest, ::testing::ValuesIn(DevicesUnderTest()),
                         DeviceParamName);

}  // namespace
}  // namespace cipherd::testing
