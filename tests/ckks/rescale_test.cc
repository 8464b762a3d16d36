// Rescaling by groups of one and several primes: exact rounding, and the circuit that uses it.
#include <complex>
#include <string>

#include "core/ckks/evaluator.h"
#include "core/ring/primes.h"
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
using Int128 = __int128;
using Uint128 = unsigned __int128;

// Five Q primes whose product, 125 bits, fits a plain integer.
ckks::ContextParameters GroupParameters(std::vector<int32_t> groups) {
  const std::vector<int> bits = {20, 20, 20, 25, 40, 60, 60};
  const std::vector<uint64_t> primes = ring::GeneratePrimes(8, bits).value();
  ckks::ContextParameters parameters;
  parameters.log_n = 8;
  parameters.q_primes.assign(primes.begin(), primes.begin() + 5);
  parameters.p_primes.assign(primes.begin() + 5, primes.end());
  parameters.rescale_groups = std::move(groups);
  parameters.digits = {{0, 1, 2}, {3, 4}};
  parameters.default_scale = 0x1p40;
  return parameters;
}

class RescaleTest : public ::testing::TestWithParam<std::string> {};

// x in [0, Q) with these residues.
Uint128 Reconstruct(const std::vector<uint64_t>& residues, const std::vector<uint64_t>& primes) {
  Uint128 x = residues[0];
  Uint128 product = primes[0];
  for (size_t i = 1; i < primes.size(); ++i) {
    const uint64_t q = primes[i];
    // Walks to the residue: primes are small enough for Fermat's inverse.
    const uint64_t target =
        static_cast<uint64_t>((residues[i] + q - static_cast<uint64_t>(x % q)) % q);
    Uint128 inverse = 1;
    Uint128 base = product % q;
    for (uint64_t e = q - 2; e != 0; e >>= 1) {
      if (e & 1) inverse = inverse * base % q;
      base = base * base % q;
    }
    x += product * static_cast<uint64_t>(target * inverse % q);
    product *= q;
  }
  return x;
}

// Every coefficient of the result is round(x / D), for uniformly random x, whatever the group is.
TEST_P(RescaleTest, DividesWithExactRounding) {
  for (const std::vector<int32_t>& groups :
       std::vector<std::vector<int32_t>>{{1, 1, 1, 1}, {2, 1}, {3, 1}, {1, 3}, {4}}) {
    SCOPED_TRACE(::testing::PrintToString(groups));
    ASSERT_OK_AND_ASSIGN(const auto party, Party::Make(GetParam(), GroupParameters(groups), {}));
    const ckks::ContextParameters& parameters = party->parameters();
    const int64_t n = parameters.ring_degree();
    for (int depth = 0; depth < parameters.max_depth(); ++depth) {
      const std::vector<int64_t> ids = parameters.ActivePrimeIds(depth, false);
      std::vector<uint64_t> primes;
      Int128 product = 1;
      for (int64_t id : ids) {
        primes.push_back(parameters.q_primes[id]);
        product *= primes.back();
      }
      const int group = parameters.rescale_groups[depth];
      Int128 divisor = 1;
      for (int i = 0; i < group; ++i) divisor *= primes[i];

      Ciphertext a{
          .data = {}, .depth = depth, .scale = 1, .domain = value::PolynomialDomain::kCoefficient};
      ASSERT_OK_AND_ASSIGN(a.data,
                           value::Tensor::AllocateHost(value::DType::kUint64,
                                                       {2, static_cast<int64_t>(ids.size()), n}));
      uint64_t* words = a.data.data_as<uint64_t>();
      for (int64_t i = 0; i < a.data.element_count(); ++i) {
        words[i] = party->random->NextUint64() % primes[(i / n) % primes.size()];
      }
      const std::vector<uint64_t> before(words, words + a.data.element_count());
      ASSERT_OK_AND_ASSIGN(a.data, party->ToDevice(a.data));
      ASSERT_OK_AND_ASSIGN(const Ciphertext in, party->evaluator->ToNtt(a, *party->stream));
      ASSERT_OK_AND_ASSIGN(const Ciphertext rescaled,
                           party->evaluator->Rescale(in, *party->stream));
      ASSERT_OK_AND_ASSIGN(const Ciphertext out,
                           party->evaluator->ToCoefficient(rescaled, *party->stream));
      ASSERT_OK_AND_ASSIGN(const std::vector<uint64_t> after, party->Words(out.data));
      const int64_t in_limbs = static_cast<int64_t>(ids.size());
      const int64_t out_limbs = in_limbs - group;
      ASSERT_EQ(static_cast<int64_t>(after.size()), 2 * out_limbs * n);
      for (int64_t c = 0; c < 2; ++c) {
        for (int64_t i = 0; i < n; ++i) {
          std::vector<uint64_t> residues;
          for (int64_t l = 0; l < in_limbs; ++l)
            residues.push_back(before[(c * in_limbs + l) * n + i]);
          const Int128 x = static_cast<Int128>(Reconstruct(residues, primes));
          ASSERT_LT(x, product);
          // D is odd: no ties.
          const Int128 rounded = (x + (divisor - 1) / 2) / divisor;
          for (int64_t l = 0; l < out_limbs; ++l) {
            ASSERT_EQ(after[(c * out_limbs + l) * n + i],
                      static_cast<uint64_t>(rounded % static_cast<Int128>(primes[l + group])));
          }
        }
      }
    }
  }
}

TEST_P(RescaleTest, CircuitsRescaleByGroups) {
  ASSERT_OK_AND_ASSIGN(const auto party,
                       Party::Make(GetParam(), GroupParameters({2, 1}),
                                   {KeyId::Relinearization(), KeyId::Rotation(3, 128)}));
  // Scale 2^40 over a first group of 2 x 20 bits: the square's scale returns to about 2^40.
  const Slots x = party->RandomSlots();
  ASSERT_OK_AND_ASSIGN(Ciphertext a, party->Encrypt(x, 0));
  ASSERT_OK_AND_ASSIGN(a, party->evaluator->Square(a, *party->stream));
  ASSERT_OK_AND_ASSIGN(a, party->evaluator->Relinearize(a, party->table, *party->stream));
  ASSERT_OK_AND_ASSIGN(a, party->evaluator->Rescale(a, *party->stream));
  ASSERT_OK_AND_ASSIGN(a, party->evaluator->Rotate(a, 3, party->table, *party->stream));
  EXPECT_EQ(a.depth, 1);
  EXPECT_EQ(a.limb_count(), 3);
  EXPECT_NEAR(std::log2(a.scale), 40, 0.01);
  NoiseModel::State state =
      party->noise->EncryptSymmetric(party->noise->Encode(std::sqrt(2.0), party->scale()));
  state = party->noise->KeySwitch(party->noise->Multiply(state, state), 0);
  state = party->noise->KeySwitch(party->noise->Rescale(state, 0, 2), 1);
  ASSERT_OK_AND_ASSIGN(const Slots decrypted, party->Decrypt(a));
  EXPECT_LE(MaxDistance(decrypted, Rotated(Map(x, x, std::multiplies<Complex>()), 3)),
            (state.error + party->noise->Transform(state.message)) / a.scale);
}

INSTANTIATE_TEST_SUITE_P(Devices, RescaleTest, ::testing::ValuesIn(DevicesUnderTest()),
                         DeviceParamName);

}  // namespace
}  // namespace cipherd::testing
