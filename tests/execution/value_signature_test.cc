#include "core/execution/value_signature.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "absl/hash/hash_testing.h"
#include "tests/execution/execution_fixture.h"

namespace cipherd::testing {
namespace {

using execution::ValueSignature;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using value::ExactValue;
using value::Tensor;

Tensor OneWord() { return Tensor::AllocateHost(value::DType::kUint64, {1}).value(); }

ExactValue Example() { return CiphertextOf(OneWord(), 3); }

// A change of one field, and what the mismatch says.
struct Change {
  std::string message;
  void (*apply)(ExactValue&);
};

const std::vector<Change>& Changes() {
  static const auto* const changes = new std::vector<Change>{
      {"x.type: expected Ciphertext, got Plaintext",
       [](ExactValue& v) { v.type = value::ValueType::kPlaintext; }},
      {"x.schema_version: expected 1, got 2", [](ExactValue& v) { v.schema_version = 2; }},
      {"x.context_id: expected " + std::string(64, 'a') + ", got nothing",
       [](ExactValue& v) { v.context_id.reset(); }},
      {"x.context_id: expected " + std::string(64, 'a') + ", got b",
       [](ExactValue& v) { v.context_id = "b"; }},
      {"x.depth: expected 3, got 2", [](ExactValue& v) { v.metadata.depth = 2; }},
      {"x.depth: expected 3, got nothing", [](ExactValue& v) { v.metadata.depth.reset(); }},
      {"x.scale: expected 1099511627776, got 1099511627776.0002",
       [](ExactValue& v) { v.metadata.scale = std::nextafter(0x1p40, 0x1p41); }},
      {"x.prime_ids: expected [0, 1], got [0, 2]",
       [](ExactValue& v) {
         v.metadata.prime_ids = {0, 2};
       }},
      {"x.domain: expected ntt, got coefficient",
       [](ExactValue& v) { v.metadata.domain = value::PolynomialDomain::kCoefficient; }},
      {"x.basis: expected Q, got QP",
       [](ExactValue& v) { v.metadata.basis = value::ModulusBasis::kQP; }},
      {"x.residue_representation: expected standard, got montgomery",
       [](ExactValue& v) {
         v.metadata.residue_representation = value::ResidueRepresentation::kMontgomery;
       }},
      {"x.plaintext_representation: expected nothing, got rns",
       [](ExactValue& v) {
         v.metadata.plaintext_representation = value::PlaintextRepresentation::kRns;
       }},
      {"x.rotation_step: expected nothing, got 4",
       [](ExactValue& v) { v.metadata.rotation_step = 4; }},
      {"x.tensors: expected ['data'], got ['data', 'seed']",
       [](ExactValue& v) { v.tensors.emplace_back("seed", OneWord()); }},
      {"x.data.requires_grad: expected false, got true",
       [](ExactValue& v) { v.tensors[0].second.set_requires_grad(true); }},
  };
  return *changes;
}

class ValueSignatureTest : public ExecutionTest {};

TEST_P(ValueSignatureTest, S1_HostAndDeviceCopiesHaveEqualSignatures) {
  ASSERT_OK_AND_ASSIGN(ValueSignature host,
                       ValueSignature::FromValue(CiphertextOf(HostWords({1}))));
  ASSERT_OK_AND_ASSIGN(ValueSignature on_device,
                       ValueSignature::FromValue(CiphertextOf(DeviceWords({2}))));
  EXPECT_EQ(host, on_device);
}

INSTANTIATE_ON_DEVICES(ValueSignatureTest);

TEST(ValueSignatureFieldTest, S2_HoldsTheExactStateInOrder) {
  ExactValue exact = Example();
  exact.tensors.insert(exact.tensors.begin(), {"seed", OneWord()});
  ASSERT_OK_AND_ASSIGN(ValueSignature signature, ValueSignature::FromValue(exact));
  EXPECT_EQ(signature.type_name, "Ciphertext");
  EXPECT_EQ(signature.schema_version, value::kValueSchemaVersion);
  EXPECT_EQ(signature.context_id, std::string(64, 'a'));
  std::vector<std::string> keys, names;
  for (const auto& [key, field] : signature.metadata) keys.push_back(key);
  for (const auto& [name, tensor] : signature.tensors) names.push_back(name);
  EXPECT_THAT(keys, ElementsAre("basis", "depth", "domain", "prime_ids", "residue_representation",
                                "scale"));
  EXPECT_THAT(names, ElementsAre("data", "seed"));
}

TEST(ValueSignatureFieldTest, S2_EveryFieldCountsAndIsNamed) {
  ASSERT_OK_AND_ASSIGN(ValueSignature expected, ValueSignature::FromValue(Example()));
  EXPECT_OK(expected.CheckSame(expected, "x"));
  for (const Change& change : Changes()) {
    ExactValue changed = Example();
    change.apply(changed);
    ASSERT_OK_AND_ASSIGN(ValueSignature actual, ValueSignature::FromValue(changed));
    EXPECT_NE(expected, actual) << change.message;
    EXPECT_THAT(expected.CheckSame(actual, "x"),
                StatusIs(absl::StatusCode::kInvalidArgument, change.message));
  }
}

TEST(ValueSignatureFieldTest, S2_ScalesCompareByTheirBits) {
  ASSERT_OK_AND_ASSIGN(ValueSignature zero,
                       ValueSignature::FromValue(CiphertextOf(OneWord(), 0, 0.0)));
  ASSERT_OK_AND_ASSIGN(ValueSignature negative_zero,
                       ValueSignature::FromValue(CiphertextOf(OneWord(), 0, -0.0)));
  ASSERT_OK_AND_ASSIGN(ValueSignature nan,
                       ValueSignature::FromValue(CiphertextOf(OneWord(), 0, std::nan(""))));
  EXPECT_NE(zero, negative_zero);
  EXPECT_EQ(nan, nan);
  EXPECT_OK(nan.CheckSame(nan, "x"));
  EXPECT_THAT(zero.CheckSame(negative_zero, "x"),
              StatusIs(absl::StatusCode::kInvalidArgument, "x.scale: expected 0, got -0"));
}

TEST(ValueSignatureFieldTest, S4_ValueWithoutTensorsIsRefused) {
  ExactValue exact = Example();
  exact.tensors.clear();
  EXPECT_THAT(
      ValueSignature::FromValue(exact, "x"),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("x: expected a value with tensors")));
}

TEST(ValueSignatureFieldTest, S6_HashesAgreeWithEquality) {
  std::vector<ValueSignature> signatures = {ValueSignature::FromValue(Example()).value()};
  for (const Change& change : Changes()) {
    ExactValue changed = Example();
    change.apply(changed);
    signatures.push_back(ValueSignature::FromValue(changed).value());
  }
  signatures.push_back(ValueSignature::FromValue(CiphertextOf(OneWord(), 3, 0.0)).value());
  signatures.push_back(ValueSignature::FromValue(CiphertextOf(OneWord(), 3, -0.0)).value());
  EXPECT_TRUE(absl::VerifyTypeImplementsAbslHashCorrectly(signatures));
}

TEST(ValueSignatureFieldTest, S6_PrintsOnOneLineOrMany) {
  ExactValue exact;
  exact.metadata.depth = 3;
  exact.metadata.scale = 0.1;
  exact.tensors.emplace_back("data", OneWord());
  ASSERT_OK_AND_ASSIGN(ValueSignature signature, ValueSignature::FromValue(exact));
  EXPECT_EQ(signature.ToString(),
            "Ciphertext{schema_version=1, depth=3, scale=0.10000000000000001, data: uint64[1]}");
  EXPECT_EQ(signature.ToString(true),
            "Ciphertext{\n  schema_version=1,\n  depth=3,\n  scale=0.10000000000000001,\n"
            "  data: uint64[1]\n}");
}

}  // namespace
}  // namespace cipherd::testing
