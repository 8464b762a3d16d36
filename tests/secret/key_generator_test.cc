#include "core/secret/key_generator.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <string>
#include <vector>

#include "core/ckks/host_ring.h"
#include "core/ring/rns_basis.h"
#include "core/secret/samplers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ckks/ckks_fixture.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::secret {
namespace {

using ::cipherd::testing::SmallParameters;
using ::cipherd::testing::StatusIs;
using ::cipherd::testing::WithDigits;
using ckks::Context;
using ckks::KeyId;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class KeyGeneratorTest : public ::testing::Test {
 protected:
  KeyGeneratorTest()
      : context_(Context::Create(WithDigits(SmallParameters(6), {{0, 3}, {1, 2}}),
                                 ckks::SecurityPolicy::kAllowInsecure)
                     .value()),
        secret_key_(SecretKey::Generate(context_, random_)),
        generator_(secret_key_) {}

  size_t n() const { return static_cast<size_t>(context_->parameters().ring_degree()); }
  uint64_t Modulus(int64_t id) const { return context_->prime(id); }

  // Centred coefficients of b + a · s modulo one prime.
  std::vector<int64_t> Phase(std::span<const uint64_t> b, std::span<const uint64_t> a, int64_t id) {
    std::vector<uint64_t> sum(b.begin(), b.end());
    ckks::MultiplyAddOnHost(*context_, id, a, secret_key_.limb(id), sum);
    ckks::InverseNttOnHost(*context_, id, sum);
    std::vector<int64_t> centred;
    for (uint64_t x : sum) {
      centred.push_back(x > Modulus(id) / 2 ? -static_cast<int64_t>(Modulus(id) - x)
                                            : static_cast<int64_t>(x));
    }
    return centred;
  }

  // s' by plain integers: s^2 or s(X^g), negacyclic.
  std::vector<int64_t> SourceSecret(const KeyId& id) {
    const std::span<const int8_t> s = secret_key_.coefficients();
    std::vector<int64_t> out(n());
    const auto add = [&](size_t exponent, int64_t value) {
      exponent %= 2 * n();
      out[exponent % n()] += exponent < n() ? value : -value;
    };
    const ckks::ContextParameters& parameters = context_->parameters();
    for (size_t i = 0; i < n(); ++i) {
      if (id.type == value::ValueType::kRelinearizationKey) {
        for (size_t j = 0; j < n(); ++j) add(i + j, s[i] * s[j]);
      } else {
        add(i * (id.type == value::ValueType::kConjugationKey
                     ? parameters.ConjugationElement()
                     : parameters.RotationElement(id.rotation_step)),
            s[i]);
      }
    }
    return out;
  }

  std::span<const uint64_t> Limb(const value::Tensor& data, int64_t index) const {
    return {data.data_as<uint64_t>() + index * static_cast<int64_t>(n()), n()};
  }

  Random random_ = Random::FromSeedForTesting(21);
  std::shared_ptr<const Context> context_;
  SecretKey secret_key_;
  KeyGenerator generator_;
};

// b + a · s = e + P · F_d · s', with one small error polynomial a digit, modulo every prime of QP.
TEST_F(KeyGeneratorTest, EvaluationKeysHideTheirSourceBehindSmallErrors) {
  const ckks::ContextParameters& parameters = context_->parameters();
  const int64_t limbs = parameters.q_count() + parameters.p_count();
  for (const KeyId& id : {KeyId::Relinearization(), KeyId::Conjugation(), KeyId::Rotation(3, 32)}) {
    SCOPED_TRACE(id);
    ASSERT_OK_AND_ASSIGN(const GeneratedKey generated, generator_.GenerateKey(id, random_));
    EXPECT_EQ(generated.key.id, id);
    const std::vector<int64_t> source = SourceSecret(id);
    for (size_t d = 0; d < parameters.digits.size(); ++d) {
      std::vector<int64_t> first_error;
      for (int64_t l = 0; l < limbs; ++l) {
        const int64_t base = static_cast<int64_t>(2 * d) * limbs;
        std::vector<int64_t> error = Phase(Limb(generated.key.data, base + l),
                                           Limb(generated.key.data, base + limbs + l), l);
        const bool in_digit = std::find(parameters.digits[d].begin(), parameters.digits[d].end(),
                                        l) != parameters.digits[d].end();
        if (in_digit) {
          const std::vector<uint16_t> p_rows = {4, 5};
          const uint64_t p = context_->basis().ProductMod(p_rows, static_cast<int>(l));
          const __int128 q = Modulus(l);
          for (size_t i = 0; i < n(); ++i) {
            __int128 x = (error[i] - static_cast<__int128>(p) * source[i]) % q;
            if (x > q / 2) x -= q;
            if (x < -q / 2) x += q;
            error[i] = static_cast<int64_t>(x);
          }
        }
        for (int64_t e : error) ASSERT_LE(std::abs(e), kErrorTailCut);
        if (l == 0) {
          first_error = error;
          EXPECT_TRUE(std::any_of(error.begin(), error.end(), [](int64_t e) { return e != 0; }));
        }
        EXPECT_EQ(error, first_error);
      }
    }
  }
}

TEST_F(KeyGeneratorTest, UniformPartsAreExpandedFromTheSeed) {
  ASSERT_OK_AND_ASSIGN(const GeneratedKey generated,
                       generator_.GenerateKey(KeyId::Relinearization(), random_));
  std::vector<uint64_t> expected(n());
  for (int64_t d = 0; d < 2; ++d) {
    for (int64_t l = 0; l < 6; ++l) {
      ckks::ExpandSeededUniform(generated.seed, static_cast<uint32_t>(d), static_cast<uint32_t>(l),
                                Modulus(l), expected);
      const auto actual = Limb(generated.key.data, (2 * d + 1) * 6 + l);
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), actual.begin()));
    }
  }
  ASSERT_OK_AND_ASSIGN(const GeneratedKey other,
                       generator_.GenerateKey(KeyId::Relinearization(), random_));
  EXPECT_NE(other.seed, generated.seed);
}

TEST_F(KeyGeneratorTest, PublicKeyEncryptsZero) {
  ASSERT_OK_AND_ASSIGN(const PublicKey key, generator_.GeneratePublicKey(random_));
  EXPECT_THAT(key.data.shape(), ElementsAre(2, 4, 64));
  for (int64_t l = 0; l < 4; ++l) {
    for (int64_t e : Phase(Limb(key.data, l), Limb(key.data, 4 + l), l)) {
      EXPECT_LE(std::abs(e), kErrorTailCut);
    }
  }
  const value::ExactValue value = key.ToValue(context_->parameters(), context_->id());
  ASSERT_OK_AND_ASSIGN(const PublicKey back,
                       PublicKey::FromValue(value, "key", context_->parameters(), context_->id()));
  EXPECT_EQ(back.data.data(), key.data.data());
  EXPECT_THAT(PublicKey::FromValue(value, "key", context_->parameters(), "another"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("key.context_id")));
}

TEST_F(KeyGeneratorTest, KeySetsHoldExactlyTheLayout) {
  const ckks::KeyLayout layout(
      {KeyId::Rotation(-1, 32), KeyId::Relinearization(), KeyId::Rotation(2, 32)});
  std::vector<int> progress;
  ASSERT_OK_AND_ASSIGN(const ckks::KeySet keys,
                       generator_.GenerateKeySet(layout, random_, [&](int done, int total) {
                         progress.push_back(10 * total + done);
                       }));
  EXPECT_THAT(progress, ElementsAre(31, 32, 33));
  std::vector<KeyId> ids;
  for (const auto& [id, key] : keys) ids.push_back(id);
  EXPECT_EQ(ids, layout.ids());
}

TEST_F(KeyGeneratorTest, SinksStopTheGeneration) {
  const ckks::KeyLayout layout({KeyId::Rotation(1, 32), KeyId::Rotation(2, 32)});
  int calls = 0;
  EXPECT_THAT(generator_.GenerateKeys(layout, random_,
                                      [&](GeneratedKey, int, int) {
                                        ++calls;
                                        return absl::CancelledError("enough");
                                      }),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("enough")));
  EXPECT_EQ(calls, 1);
}

TEST_F(KeyGeneratorTest, RefusesIdsThatAreNoKeys) {
  const auto refused = [](const std::string& message) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message));
  };
  EXPECT_THAT(generator_.GenerateKey({value::ValueType::kRotationKey, 0}, random_),
              refused("rotation_step: expected 1 to 31, got 0"));
  EXPECT_THAT(generator_.GenerateKey({value::ValueType::kRotationKey, 32}, random_),
              refused("rotation_step: expected 1 to 31, got 32"));
  EXPECT_THAT(generator_.GenerateKey({value::ValueType::kConjugationKey, 1}, random_),
              refused("rotation_step: expected 0 to 0, got 1"));
  EXPECT_THAT(generator_.GenerateKey({value::ValueType::kSecretKey, 0}, random_),
              refused("expected a relinearization, rotation or conjugation key"));
}

TEST_F(KeyGeneratorTest, SecretKeysReturnFromTheirCoefficients) {
  ASSERT_OK_AND_ASSIGN(const SecretKey same,
                       SecretKey::FromCoefficients(context_, secret_key_.coefficients()));
  for (int64_t id = 0; id < 6; ++id) {
    EXPECT_TRUE(
        std::equal(same.limb(id).begin(), same.limb(id).end(), secret_key_.limb(id).begin()));
  }
  std::vector<int8_t> wrong(secret_key_.coefficients().begin(), secret_key_.coefficients().end());
  wrong[5] = 2;
  EXPECT_THAT(SecretKey::FromCoefficients(context_, wrong),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("in {-1, 0, 1}")));
  wrong.pop_back();
  EXPECT_THAT(
      SecretKey::FromCoefficients(context_, wrong),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expected 64 coefficients, got 63")));
}

}  // namespace
}  // namespace cipherd::secret
