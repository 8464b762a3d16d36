// Encryption and decryption, within the bounds of tests/ckks/noise_model.h.
#include <cmath>
#include <complex>
#include <string>
#include <vector>

#include "core/ckks/encoder.h"
#include "core/ckks/host_ring.h"
#include "core/secret/decryptor.h"
#include "core/secret/encryptor.h"
#include "core/secret/key_generator.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ckks/ckks_fixture.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::secret {
namespace {

using ::cipherd::testing::MaxDistance;
using ::cipherd::testing::NoiseModel;
using ::cipherd::testing::Slots;
using ::cipherd::testing::SmallParameters;
using ::cipherd::testing::StatusIs;
using ckks::Ciphertext;
using ckks::Context;
using ckks::Plaintext;
using ::testing::HasSubstr;

class EncryptionTest : public ::testing::Test {
 protected:
  EncryptionTest()
      : context_(Context::Create(SmallParameters(9), ckks::SecurityPolicy::kAllowInsecure).value()),
        noise_(context_->parameters()),
        encoder_(context_),
        secret_key_(SecretKey::Generate(context_, random_)),
        decryptor_(secret_key_),
        symmetric_(secret_key_),
        public_(context_, KeyGenerator(secret_key_).GeneratePublicKey(random_).value()) {
    for (std::complex<double>& slot : slots_) {
      const double real = 2 * random_.NextUnitDouble() - 1;
      slot = {real, 2 * random_.NextUnitDouble() - 1};
    }
  }

  double scale() const { return context_->parameters().default_scale; }
  NoiseModel::State Encoded() const { return noise_.Encode(std::sqrt(2.0), scale()); }

  void ExpectDecrypts(const Ciphertext& ciphertext, double error) {
    ASSERT_OK_AND_ASSIGN(const Plaintext message, decryptor_.Decrypt(ciphertext));
    EXPECT_EQ(message.depth, ciphertext.depth);
    EXPECT_EQ(message.scale, ciphertext.scale);
    ASSERT_OK_AND_ASSIGN(const Slots actual, encoder_.Decode(message));
    EXPECT_LE(MaxDistance(actual, slots_), error / scale());
  }

  Random random_ = Random::FromSeedForTesting(31);
  std::shared_ptr<const Context> context_;
  NoiseModel noise_;
  ckks::Encoder encoder_;
  SecretKey secret_key_;
  Decryptor decryptor_;
  SymmetricEncryptor symmetric_;
  PublicKeyEncryptor public_;
  Slots slots_ = Slots(256);
};

TEST_F(EncryptionTest, DecryptsAtEveryDepth) {
  for (int depth = 0; depth <= 3; ++depth) {
    SCOPED_TRACE(depth);
    ASSERT_OK_AND_ASSIGN(const Plaintext message, encoder_.EncodeComplex(slots_, depth, scale()));
    ASSERT_OK_AND_ASSIGN(const SeededCiphertext seeded, symmetric_.Encrypt(message, random_));
    EXPECT_EQ(seeded.ciphertext.limb_count(), 4 - depth);
    ExpectDecrypts(seeded.ciphertext, noise_.EncryptSymmetric(Encoded()).error);
    ASSERT_OK_AND_ASSIGN(const Ciphertext ciphertext, public_.Encrypt(message, random_));
    ExpectDecrypts(ciphertext, noise_.EncryptPublic(Encoded()).error);
  }
}

TEST_F(EncryptionTest, EncryptionsOfOneMessageDiffer) {
  ASSERT_OK_AND_ASSIGN(const Plaintext message, encoder_.EncodeComplex(slots_, 3, scale()));
  const auto first_word = [](const Ciphertext& c) { return c.data.data_as<uint64_t>()[0]; };
  ASSERT_OK_AND_ASSIGN(const Ciphertext a, public_.Encrypt(message, random_));
  ASSERT_OK_AND_ASSIGN(const Ciphertext b, public_.Encrypt(message, random_));
  EXPECT_NE(first_word(a), first_word(b));
  ASSERT_OK_AND_ASSIGN(const SeededCiphertext c, symmetric_.Encrypt(message, random_));
  ASSERT_OK_AND_ASSIGN(const SeededCiphertext d, symmetric_.Encrypt(message, random_));
  EXPECT_NE(first_word(c.ciphertext), first_word(d.ciphertext));
  EXPECT_NE(c.seed, d.seed);
}

TEST_F(EncryptionTest, ComponentOneIsExpandedFromTheSeed) {
  ASSERT_OK_AND_ASSIGN(const Plaintext message, encoder_.EncodeComplex(slots_, 1, scale()));
  ASSERT_OK_AND_ASSIGN(const SeededCiphertext seeded, symmetric_.Encrypt(message, random_));
  std::vector<uint64_t> expected(512);
  for (int64_t l = 0; l < 3; ++l) {
    const uint32_t id = static_cast<uint32_t>(l + 1);
    ckks::ExpandSeededUniform(seeded.seed, 0, id, context_->prime(id), expected);
    const uint64_t* actual = seeded.ciphertext.data.data_as<uint64_t>() + (3 + l) * 512;
    EXPECT_EQ(expected, std::vector<uint64_t>(actual, actual + 512));
  }
}

TEST_F(EncryptionTest, DecryptsEitherDomain) {
  ASSERT_OK_AND_ASSIGN(const Plaintext message, encoder_.EncodeComplex(slots_, 2, scale()));
  ASSERT_OK_AND_ASSIGN(Ciphertext ciphertext, public_.Encrypt(message, random_));
  uint64_t* words = ciphertext.data.data_as<uint64_t>();
  for (int component = 0; component < 2; ++component) {
    for (int64_t id : {2, 3}) {
      ckks::InverseNttOnHost(*context_, id, {words, 512});
      words += 512;
    }
  }
  ciphertext.domain = value::PolynomialDomain::kCoefficient;
  ExpectDecrypts(ciphertext, noise_.EncryptPublic(Encoded()).error);
}

TEST_F(EncryptionTest, AnotherKeyDecryptsToNoise) {
  ASSERT_OK_AND_ASSIGN(const Plaintext message, encoder_.EncodeComplex(slots_, 3, scale()));
  ASSERT_OK_AND_ASSIGN(const Ciphertext ciphertext, public_.Encrypt(message, random_));
  const SecretKey other = SecretKey::Generate(context_, random_);
  ASSERT_OK_AND_ASSIGN(const Plaintext wrong, Decryptor(other).Decrypt(ciphertext));
  ASSERT_OK_AND_ASSIGN(const Slots slots, encoder_.Decode(wrong));
  // Uniform modulo 2^50 at scale 2^40.
  EXPECT_GT(MaxDistance(slots, slots_), 100);
}

TEST_F(EncryptionTest, FloodingAddsNoiseOfItsStandardDeviation) {
  const FloodingOptions flooding{.error_bound = 100, .statistical_bits = 10, .result_count = 4};
  // 100 · sqrt(4 · 512) · 2^9.
  EXPECT_NEAR(flooding.StandardDeviation(512), 100 * std::sqrt(2048.0) * 512, 1e-6);
  ASSERT_OK_AND_ASSIGN(const Plaintext message, encoder_.EncodeComplex(slots_, 0, scale()));
  ASSERT_OK_AND_ASSIGN(const Ciphertext ciphertext, public_.Encrypt(message, random_));
  ASSERT_OK_AND_ASSIGN(const Plaintext plain, decryptor_.Decrypt(ciphertext));
  ASSERT_OK_AND_ASSIGN(const Slots exact, encoder_.Decode(plain));
  double squares = 0;
  constexpr int kRounds = 40;
  for (int round = 0; round < kRounds; ++round) {
    ASSERT_OK_AND_ASSIGN(const Plaintext flooded,
                         decryptor_.DecryptForSharing(ciphertext, flooding, random_));
    ASSERT_OK_AND_ASSIGN(const Slots slots, encoder_.Decode(flooded));
    for (size_t j = 0; j < slots.size(); ++j) squares += std::norm(slots[j] - exact[j]);
  }
  // A slot's noise has variance N · sigma^2 / scale^2; of 40 · 256 complex Gaussians, whose squared
  // magnitudes have a standard deviation equal to their mean, the mean is within seven standard
  // errors.
  const double sigma = flooding.StandardDeviation(512) / scale();
  const double samples = kRounds * 256.0;
  EXPECT_NEAR(squares / samples, 512 * sigma * sigma, 7 * 512 * sigma * sigma / std::sqrt(samples));
}

TEST_F(EncryptionTest, FloodingRefusesWhatLeavesNoMessage) {
  ASSERT_OK_AND_ASSIGN(const Plaintext message, encoder_.EncodeComplex(slots_, 3, scale()));
  ASSERT_OK_AND_ASSIGN(const Ciphertext ciphertext, public_.Encrypt(message, random_));
  const auto refused = [&](const FloodingOptions& flooding, const char* text) {
    EXPECT_THAT(decryptor_.DecryptForSharing(ciphertext, flooding, random_),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text)));
  };
  refused({.error_bound = 1e4, .statistical_bits = 38},
          "expected noise of at most 2^48 at depth 3");
  refused({.error_bound = 1, .statistical_bits = 39}, "statistical_bits: expected 1 to 38, got 39");
  refused({.error_bound = 0, .statistical_bits = 10}, "error_bound");
  refused({.error_bound = NAN, .statistical_bits = 10}, "error_bound");
  refused({.error_bound = 1, .statistical_bits = 0}, "statistical_bits");
  refused({.error_bound = 1, .statistical_bits = 1, .result_count = 0}, "result_count");
}

TEST_F(EncryptionTest, RefusesOperandsOfAnotherForm) {
  const auto refused = [](const std::string& text) {
    return StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(text));
  };
  ASSERT_OK_AND_ASSIGN(Plaintext message, encoder_.EncodeComplex(slots_, 1, scale()));
  ASSERT_OK_AND_ASSIGN(Ciphertext ciphertext, public_.Encrypt(message, random_));
  ciphertext.depth = 2;
  EXPECT_THAT(
      decryptor_.Decrypt(ciphertext),
      refused("ciphertext.data: expected contiguous uint64 [component, batch…, 2, 512] at depth "
              "2, got uint64 [2, 3, 512]"));
  ciphertext.depth = 7;
  EXPECT_THAT(decryptor_.Decrypt(ciphertext), refused("ciphertext.depth: expected 0 to 3, got 7"));
  message.domain = value::PolynomialDomain::kCoefficient;
  EXPECT_THAT(public_.Encrypt(message, random_), refused("message.domain: expected ntt"));
  message.domain = value::PolynomialDomain::kNtt;
  message.depth = 0;
  EXPECT_THAT(symmetric_.Encrypt(message, random_), refused("message.data: expected contiguous"));
}

}  // namespace
}  // namespace cipherd::secret
