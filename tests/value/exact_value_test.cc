#include "core/value/exact_value.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/testing/status_matchers.h"

namespace cipherd::testing {
namespace {

using ::testing::ElementsAre;
using value::ExactValue;
using value::MetadataField;
using value::ValueMetadata;

TEST(ExactValueTest, EnumerationsHaveTheirWireNames) {
  EXPECT_EQ(value::ToString(value::ValueType::kCompressedPlaintext), "CompressedPlaintext");
  EXPECT_EQ(value::ToString(value::ValueType::kSecretKey), "SecretKey");
  EXPECT_EQ(value::ToString(value::PolynomialDomain::kNtt), "ntt");
  EXPECT_EQ(value::ToString(value::ModulusBasis::kQP), "QP");
  EXPECT_EQ(value::ToString(value::ResidueRepresentation::kMontgomery), "montgomery");
  EXPECT_EQ(value::ToString(value::PlaintextRepresentation::kApproximateCoefficients),
            "approximate_coefficients");
}

TEST(ExactValueTest, PresentFieldsComeOrderedByKey) {
  ValueMetadata metadata;
  metadata.scale = 0x1p40;
  metadata.depth = 2;
  metadata.prime_ids = {0, 1};
  metadata.domain = value::PolynomialDomain::kNtt;
  std::vector<std::string> fields;
  for (const auto& [key, field] : metadata.ToFields()) {
    fields.push_back(key + "=" + value::FieldToString(field));
  }
  EXPECT_THAT(fields,
              ElementsAre("depth=2", "domain=ntt", "prime_ids=[0, 1]", "scale=1099511627776"));
}

TEST(ExactValueTest, EveryFieldTellsMetadataApart) {
  std::vector<ValueMetadata> one_field(10);
  one_field[0].depth = 1;
  one_field[1].scale = 2.0;
  one_field[2].prime_ids = {1};
  one_field[3].domain = value::PolynomialDomain::kNtt;
  one_field[4].basis = value::ModulusBasis::kQ;
  one_field[5].residue_representation = value::ResidueRepresentation::kStandard;
  one_field[6].plaintext_representation = value::PlaintextRepresentation::kRns;
  one_field[7].rotation_step = 1;
  one_field[8].galois_element = 5;
  one_field[9].digit_count = 1;
  for (size_t i = 0; i < one_field.size(); ++i) {
    EXPECT_FALSE(one_field[i] == ValueMetadata()) << i;
    EXPECT_EQ(one_field[i].ToFields().size(), 1u) << i;
    for (size_t j = 0; j < one_field.size(); ++j) {
      EXPECT_EQ(one_field[i] == one_field[j], i == j) << i << ", " << j;
    }
  }
}

TEST(ExactValueTest, ScalesCompareByTheirBits) {
  const double scale = 0x1p40;
  const double next = std::nextafter(scale, 2 * scale);
  EXPECT_FALSE(value::SameField(MetadataField(scale), MetadataField(next)));
  EXPECT_FALSE(value::SameField(MetadataField(0.0), MetadataField(-0.0)));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(value::SameField(MetadataField(nan), MetadataField(nan)));
  EXPECT_FALSE(value::SameField(MetadataField(int64_t{1}), MetadataField(1.0)));

  ValueMetadata a, b;
  a.scale = 0.0;
  b.scale = -0.0;
  EXPECT_FALSE(a == b);
  a.scale = b.scale = nan;
  EXPECT_TRUE(a == b);
}

TEST(ExactValueTest, UnequalScalesPrintDifferently) {
  const double scale = 0x1.8p44 / 3;
  EXPECT_NE(value::FieldToString(scale), value::FieldToString(std::nextafter(scale, 0.0)));
  EXPECT_NE(value::FieldToString(0.0), value::FieldToString(-0.0));
}

TEST(ExactValueTest, FindsTensorsByName) {
  ExactValue exact;
  exact.tensors.emplace_back("data", value::Tensor());
  EXPECT_EQ(exact.FindTensor("data"), &exact.tensors[0].second);
  EXPECT_EQ(exact.FindTensor("seed"), nullptr);
}

}  // namespace
}  // namespace cipherd::testing
