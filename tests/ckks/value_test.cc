// Typed views of exact values: lawful states round trip, every unlawful field is named.
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "core/ckks/ciphertext.h"
#include "core/ckks/key_set.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/ckks/ckks_fixture.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::ckks {
namespace {

using ::cipherd::testing::SmallParameters;
using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;
using value::DType;
using value::ExactValue;
using value::Tensor;

constexpr const char* kContextId = "the context";

Tensor HostTensor(std::vector<int64_t> shape, DType dtype = DType::kUint64) {
  return Tensor::AllocateHost(dtype, std::move(shape)).value();
}

struct Fault {
  std::string message;
  std::function<void(ExactValue&)> change;
};

// Ring degree 32, depth 1 of 3: three limbs.
class ValueTest : public ::testing::Test {
 protected:
  template <typename T>
  void ExpectFaultsAreNamed(const ExactValue& lawful, const std::vector<Fault>& faults) {
    ASSERT_OK(T::FromValue(lawful, "x", parameters_, kContextId));
    for (const Fault& fault : faults) {
      SCOPED_TRACE(fault.message);
      ExactValue value = lawful;
      fault.change(value);
      EXPECT_THAT(T::FromValue(value, "x", parameters_, kContextId),
                  StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(fault.message)));
    }
  }

  const ContextParameters parameters_ = SmallParameters(5);
  const std::vector<Fault> common_faults_ = {
      {"x.schema_version: expected 1, got 2", [](auto& v) { v.schema_version = 2; }},
      {"x.type: expected ", [](auto& v) { v.type = value::ValueType::kSecretKey; }},
      {"x.context_id: expected the context, got another",
       [](auto& v) { v.context_id = "another"; }},
      {"x.context_id: expected the context, got none", [](auto& v) { v.context_id.reset(); }},
      {"x.tensors: expected \"data\" alone, got 0 tensors", [](auto& v) { v.tensors.clear(); }},
      {"x.tensors: expected \"data\" alone, got 2 tensors",
       [](auto& v) { v.tensors.emplace_back("more", v.tensors[0].second); }},
      {"x.tensors: expected \"data\" alone, got 1 tensors without \"data\"",
       [](auto& v) { v.tensors[0].first = "datum"; }},
      {"x.domain: expected ", [](auto& v) { v.metadata.domain.reset(); }},
      {"x.basis: expected ", [](auto& v) { v.metadata.basis.reset(); }},
      {"x.residue_representation: expected standard, got montgomery",
       [](auto& v) {
         v.metadata.residue_representation = value::ResidueRepresentation::kMontgomery;
       }},
      {"x.prime_ids: expected [", [](auto& v) { v.metadata.prime_ids.reset(); }},
      {"got [3, 2, 1]",
       [](auto& v) {
         v.metadata.prime_ids = {3, 2, 1};
       }},
  };
  const std::vector<Fault> message_faults_ = {
      {"x.depth: expected 0 to 3, got 4", [](auto& v) { v.metadata.depth = 4; }},
      {"x.depth: expected 0 to 3, got -1", [](auto& v) { v.metadata.depth = -1; }},
      {"x.depth: expected 0 to 3, got none", [](auto& v) { v.metadata.depth.reset(); }},
      {"x.prime_ids: expected [2, 3], got [1, 2, 3]", [](auto& v) { v.metadata.depth = 2; }},
      {"x.scale: expected a finite number above 0, got none",
       [](auto& v) { v.metadata.scale.reset(); }},
      {"x.scale: expected a finite number above 0, got -1", [](auto& v) { v.metadata.scale = -1; }},
      {"x.scale: expected a finite number above 0, got nan",
       [](auto& v) { v.metadata.scale = std::numeric_limits<double>::quiet_NaN(); }},
      {"x.scale: expected a finite number above 0, got inf",
       [](auto& v) { v.metadata.scale = std::numeric_limits<double>::infinity(); }},
      {"x.basis: expected Q, got QP", [](auto& v) { v.metadata.basis = value::ModulusBasis::kQP; }},
  };
};

TEST_F(ValueTest, CiphertextsRoundTripAndFaultsAreNamed) {
  const Ciphertext ciphertext{.data = HostTensor({2, 7, 3, 32}),
                              .depth = 1,
                              .scale = 0x1p40,
                              .domain = value::PolynomialDomain::kCoefficient};
  const ExactValue value = ciphertext.ToValue(parameters_, kContextId);
  ASSERT_OK_AND_ASSIGN(const Ciphertext back,
                       Ciphertext::FromValue(value, "x", parameters_, kContextId));
  EXPECT_EQ(back.data.data(), ciphertext.data.data());
  EXPECT_EQ(back.depth, 1);
  EXPECT_EQ(back.scale, 0x1p40);
  EXPECT_EQ(back.domain, value::PolynomialDomain::kCoefficient);
  EXPECT_EQ(back.batch_count(), 7);

  ExpectFaultsAreNamed<Ciphertext>(value, common_faults_);
  ExpectFaultsAreNamed<Ciphertext>(value, message_faults_);
  const auto with_tensor = [](Tensor tensor) {
    return [tensor](ExactValue& v) { v.tensors[0].second = tensor; };
  };
  const std::string shape = "x.data.shape: expected [2 or 3, batch…, 3, 32], got ";
  ASSERT_OK_AND_ASSIGN(const Tensor strided,
                       Tensor::FromStorage(HostTensor({2, 3, 64}).storage(), 0, DType::kUint64,
                                           {2, 3, 32}, {192, 64, 1}));
  ExpectFaultsAreNamed<Ciphertext>(
      value, {{shape + "[1, 3, 32]", with_tensor(HostTensor({1, 3, 32}))},
              {shape + "[4, 3, 32]", with_tensor(HostTensor({4, 3, 32}))},
              {shape + "[2, 4, 32]", with_tensor(HostTensor({2, 4, 32}))},
              {shape + "[2, 3, 16]", with_tensor(HostTensor({2, 3, 16}))},
              {shape + "[2, 0, 3, 32]", with_tensor(HostTensor({2, 0, 3, 32}))},
              {shape + "[3, 32]", with_tensor(HostTensor({3, 32}))},
              {"x.data.dtype: expected uint64, got int64",
               with_tensor(HostTensor({2, 3, 32}, DType::kInt64))},
              {"x.data.strides: expected [96, 32, 1], got [192, 64, 1]", with_tensor(strided)}});
}

TEST_F(ValueTest, PlaintextsRoundTripAndFaultsAreNamed) {
  const Plaintext plaintext{.data = HostTensor({3, 32}),
                            .depth = 1,
                            .scale = 0x1p40,
                            .domain = value::PolynomialDomain::kNtt};
  const ExactValue value = plaintext.ToValue(parameters_, kContextId);
  ASSERT_OK_AND_ASSIGN(const Plaintext back,
                       Plaintext::FromValue(value, "x", parameters_, kContextId));
  EXPECT_EQ(back.data.data(), plaintext.data.data());
  EXPECT_EQ(back.batch_count(), 1);
  ExpectFaultsAreNamed<Plaintext>(value, common_faults_);
  ExpectFaultsAreNamed<Plaintext>(value, message_faults_);
  ExpectFaultsAreNamed<Plaintext>(
      value, {{"x.plaintext_representation: expected rns, got slots",
               [](auto& v) {
                 v.metadata.plaintext_representation = value::PlaintextRepresentation::kSlots;
               }},
              {"x.plaintext_representation: expected rns, got none",
               [](auto& v) { v.metadata.plaintext_representation.reset(); }},
              {"x.data.shape: expected [batch…, 3, 32], got [32]",
               [](auto& v) { v.tensors[0].second = HostTensor({32}); }}});
}

TEST_F(ValueTest, EvaluationKeysRoundTripAndFaultsAreNamed) {
  for (const KeyId& id :
       {KeyId::Relinearization(), KeyId::Conjugation(), KeyId::Rotation(-3, 16)}) {
    SCOPED_TRACE(id);
    const EvaluationKey key{.id = id, .data = HostTensor({2, 2, 6, 32})};
    EXPECT_EQ(key.data.bytes(), EvaluationKeyBytes(parameters_));
    const ExactValue value = key.ToValue(parameters_, kContextId);
    EXPECT_EQ(value.type, id.type);
    ASSERT_OK_AND_ASSIGN(const EvaluationKey back,
                         EvaluationKey::FromValue(value, "x", parameters_, kContextId));
    EXPECT_EQ(back.id, id);
    EXPECT_EQ(back.data.data(), key.data.data());
    ExpectFaultsAreNamed<EvaluationKey>(value, common_faults_);
    ExpectFaultsAreNamed<EvaluationKey>(
        value,
        {{"x.type: expected RelinearizationKey, RotationKey or ConjugationKey, got Ciphertext",
          [](auto& v) { v.type = value::ValueType::kCiphertext; }},
         {"x.domain: expected ntt, got coefficient",
          [](auto& v) { v.metadata.domain = value::PolynomialDomain::kCoefficient; }},
         {"x.basis: expected QP, got Q",
          [](auto& v) { v.metadata.basis = value::ModulusBasis::kQ; }},
         {"x.digit_count: expected 2, got 3", [](auto& v) { v.metadata.digit_count = 3; }},
         {"x.digit_count: expected 2, got none", [](auto& v) { v.metadata.digit_count.reset(); }},
         {"x.galois_element: expected ", [](auto& v) { v.metadata.galois_element = 7; }},
         {"x.data.shape: expected [2, 2, 6, 32], got [2, 2, 5, 32]",
          [](auto& v) {
            v.tensors[0].second = HostTensor({2, 2, 5, 32});
          }},
         {"x.rotation_step: expected ", [](auto& v) { v.metadata.rotation_step = 16; }}});
  }
  const ExactValue rotation =
      EvaluationKey{.id = KeyId::Rotation(1, 16), .data = HostTensor({2, 2, 6, 32})}.ToValue(
          parameters_, kContextId);
  ExpectFaultsAreNamed<EvaluationKey>(
      rotation,
      {{"x.rotation_step: expected 1 to 15, got 0", [](auto& v) { v.metadata.rotation_step = 0; }},
       {"x.rotation_step: expected 1 to 15, got none",
        [](auto& v) { v.metadata.rotation_step.reset(); }},
       // Step and element must belong together.
       {"x.galois_element: expected 25, got 5", [](auto& v) { v.metadata.rotation_step = 2; }}});
}

TEST(KeyIdTest, StepsCountModuloTheSlots) {
  EXPECT_EQ(KeyId::Rotation(-1, 16), KeyId::Rotation(15, 16));
  EXPECT_EQ(KeyId::Rotation(33, 16), KeyId::Rotation(1, 16));
  EXPECT_EQ(KeyId::Rotation(-33, 16).ToString(), "rotation(15)");
  EXPECT_EQ(KeyId::Relinearization().ToString(), "relinearization");
  EXPECT_EQ(KeyId::Conjugation().ToString(), "conjugation");
}

TEST(KeyLayoutTest, SortsAndFindsSlots) {
  const KeyLayout layout({KeyId::Rotation(5, 16), KeyId::Relinearization(), KeyId::Rotation(2, 16),
                          KeyId::Rotation(5, 16)});
  EXPECT_EQ(layout.size(), 3);
  for (int slot = 0; slot < layout.size(); ++slot) {
    ASSERT_OK_AND_ASSIGN(const int found, layout.SlotOf(layout.ids()[slot]));
    EXPECT_EQ(found, slot);
  }
  EXPECT_THAT(layout.SlotOf(KeyId::Conjugation()),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("conjugation")));
}

}  // namespace
}  // namespace cipherd::ckks
