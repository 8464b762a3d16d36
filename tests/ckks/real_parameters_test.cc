// Circuits at parameters of 128-bit security, on every device.
#include <complex>
#include <map>
#include <string>
#include <vector>

#include "core/ckks/linear_transform.h"
#include "core/secret/decryptor.h"
#include "core/secret/encryptor.h"
#include "core/secret/key_generator.h"
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

class RealParametersTest : public ::testing::TestWithParam<std::string> {};

// ((x^2)^2)^2 rotated, at log N = 14, log QP = 315: every depth, public-key encryption.
TEST_P(RealParametersTest, DepthThreeCircuitAtLogN14) {
  ckks::ContextRequest request;
  request.log_n = 14;
  request.base_prime_bits = 60;
  request.depth_prime_bits = 45;
  request.max_depth = 3;
  request.p_prime_bits = 60;
  request.p_prime_count = 2;
  request.digit_count = 2;
  ASSERT_OK_AND_ASSIGN(
      const ckks::ContextParameters parameters,
      ckks::MakeContextParameters(request, ckks::SecurityPolicy::k128BitClassical));
  ASSERT_OK_AND_ASSIGN(
      const auto party,
      Party::Make(GetParam(), parameters,
                  {KeyId::Relinearization(), KeyId::Rotation(784, parameters.slot_count())}));
  const ckks::Evaluator& evaluator = *party->evaluator;
  runtime::Stream& stream = *party->stream;
  const NoiseModel& noise = *party->noise;
  ASSERT_OK_AND_ASSIGN(secret::PublicKey public_key,
                       secret::KeyGenerator(*party->secret_key).GeneratePublicKey(*party->random));
  const secret::PublicKeyEncryptor encryptor(party->context, public_key);
  const Slots x = party->RandomSlots();
  ASSERT_OK_AND_ASSIGN(const Plaintext message,
                       party->encoder->EncodeComplex(x, 0, party->scale()));
  ASSERT_OK_AND_ASSIGN(Ciphertext a, encryptor.Encrypt(message, *party->random));
  ASSERT_OK_AND_ASSIGN(a.data, party->ToDevice(a.data));
  NoiseModel::State state = noise.EncryptPublic(noise.Encode(std::sqrt(2.0), party->scale()));
  Slots expected = x;
  for (int depth = 0; depth < 3; ++depth) {
    ASSERT_OK_AND_ASSIGN(a, evaluator.Square(a, stream));
    ASSERT_OK_AND_ASSIGN(a, evaluator.Relinearize(a, party->table, stream));
    ASSERT_OK_AND_ASSIGN(a, evaluator.Rescale(a, stream));
    state = noise.Rescale(noise.KeySwitch(noise.Multiply(state, state), depth), depth, 2);
    expected = Map(expected, expected, std::multiplies<Complex>());
  }
  ASSERT_OK_AND_ASSIGN(a, evaluator.Rotate(a, 784, party->table, stream));
  state = noise.KeySwitch(state, 3);
  ASSERT_OK_AND_ASSIGN(const Slots decrypted, party->Decrypt(a));
  const double bound = (state.error + noise.Transform(state.message)) / a.scale;
  const double distance = MaxDistance(decrypted, Rotated(expected, 784));
  EXPECT_LE(distance, bound);
  EXPECT_LT(bound, 0x1p-14);
  RecordProperty("log2_error", std::to_string(std::log2(distance)));
  RecordProperty("log2_bound", std::to_string(std::log2(bound)));
}

// A linear transform of 16 diagonals and a square at log N = 13, log QP = 185, each prime a digit.
TEST_P(RealParametersTest, LinearTransformAndSquareAtLogN13) {
  ckks::ContextRequest request;
  request.log_n = 13;
  request.base_prime_bits = 50;
  request.depth_prime_bits = 40;
  request.max_depth = 2;
  request.p_prime_bits = 55;
  request.digit_count = 3;
  ASSERT_OK_AND_ASSIGN(
      const ckks::ContextParameters parameters,
      ckks::MakeContextParameters(request, ckks::SecurityPolicy::k128BitClassical));
  std::vector<int64_t> offsets;
  for (int64_t t = 0; t < 16; ++t) offsets.push_back(8 * t);
  ASSERT_OK_AND_ASSIGN(const ckks::BsgsPlan plan,
                       ckks::BsgsPlan::Make(offsets, parameters.slot_count(), 0));
  std::vector<KeyId> keys = plan.Keys();
  keys.push_back(KeyId::Relinearization());
  ASSERT_OK_AND_ASSIGN(const auto party, Party::Make(GetParam(), parameters, keys));
  const ckks::Evaluator& evaluator = *party->evaluator;
  runtime::Stream& stream = *party->stream;
  const NoiseModel& noise = *party->noise;

  const Slots x = party->RandomSlots();
  Slots expected(x.size());
  std::map<int64_t, Plaintext> diagonals;
  for (const auto& [giant, terms] : plan.giants()) {
    for (const ckks::BsgsPlan::Term& term : terms) {
      const Slots diagonal = party->RandomSlots();
      const Slots turned = Rotated(x, term.offset);
      for (size_t j = 0; j < x.size(); ++j) expected[j] += diagonal[j] * turned[j];
      ASSERT_OK_AND_ASSIGN(
          diagonals[term.offset],
          party->Encode(Rotated(diagonal, -giant), 0, party->scale(), plan.diagonal_basis()));
    }
  }
  ASSERT_OK_AND_ASSIGN(Ciphertext a, party->Encrypt(x, 0));
  ASSERT_OK_AND_ASSIGN(a,
                       ApplyLinearTransform(evaluator, plan, diagonals, a, party->table, stream));
  ASSERT_OK_AND_ASSIGN(a, evaluator.Rescale(a, stream));
  ASSERT_OK_AND_ASSIGN(a, evaluator.Square(a, stream));
  ASSERT_OK_AND_ASSIGN(a, evaluator.Relinearize(a, party->table, stream));
  ASSERT_OK_AND_ASSIGN(a, evaluator.Rescale(a, stream));

  // Bounds as in linear_transform_test.cc, then as in noise_model.h.
  const NoiseModel::State encoded = noise.Encode(std::sqrt(2.0), party->scale());
  const NoiseModel::State term =
      noise.Multiply(noise.KeySwitch(noise.EncryptSymmetric(encoded), 0), encoded);
  NoiseModel::State state;
  for (size_t i = 0; i < offsets.size(); ++i) state = noise.Add(state, term);
  for (size_t g = 0; g < plan.giants().size(); ++g) state = noise.KeySwitch(state, 0);
  state = noise.Rescale(state, 0, 2);
  state = noise.Rescale(noise.KeySwitch(noise.Multiply(state, state), 1), 1, 2);
  ASSERT_OK_AND_ASSIGN(const Slots decrypted, party->Decrypt(a));
  const double bound = (state.error + noise.Transform(state.message)) / a.scale;
  EXPECT_LE(MaxDistance(decrypted, Map(expected, expected, std::multiplies<Complex>())), bound);
  EXPECT_LT(bound, 0.1);  // values reach 32^2
}

INSTANTIATE_TEST_SUITE_P(Devices, RealParametersTest, ::testing::ValuesIn(DevicesUnderTest()),
                         DeviceParamName);

}  // namespace
}  // namespace cipherd::testing
