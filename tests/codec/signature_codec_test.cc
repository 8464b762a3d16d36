#include "proto/codec/signature_codec.h"

#include <bit>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/codec/wire_values.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::codec {
namespace {

using ::cipherd::testing::CountingTensor;
using ::cipherd::testing::IsRefusal;
using ::cipherd::testing::MakeCiphertext;
using ::cipherd::testing::MakeKey;
using ::cipherd::testing::MakePlaintext;
using ::cipherd::testing::MakePublicKey;
using ::cipherd::testing::SmallContext;
using execution::TensorSignature;
using execution::ValueSignature;
using execution::ValueTreeSignature;
using value::DType;
using value::ValueTree;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kMalformed = v1::ERROR_REASON_MALFORMED_VALUE;
constexpr auto kLimit = v1::ERROR_REASON_LIMIT_EXCEEDED;

v1::ValueTreeSignature Encode(const ValueTreeSignature& signature) {
  v1::ValueTreeSignature message;
  EXPECT_OK(EncodeSignature(signature, "signature", &message));
  return message;
}

void ExpectRoundTrip(const ValueTreeSignature& signature) {
  v1::ValueTreeSignature parsed;
  ASSERT_TRUE(parsed.ParseFromString(Encode(signature).SerializeAsString()));
  ASSERT_OK_AND_ASSIGN(const ValueTreeSignature back,
                       DecodeSignature(parsed, WireLimits(), "signature"));
  EXPECT_EQ(back, signature);
  EXPECT_EQ(back.ToString(true), signature.ToString(true));
}

ValueTreeSignature CiphertextSignature() {
  return *ValueTreeSignature::FromTree(ValueTree::Value(MakeCiphertext(*SmallContext(), 1)));
}

TEST(SignatureCodecTest, S6_SignaturesGoThroughProtobufWithoutLoss) {
  const KnownContext& context = *SmallContext();
  std::vector<ValueTree> leaves = {ValueTree::Value(MakeCiphertext(context, 0)),
                                   ValueTree::Value(MakePublicKey(context)),
                                   ValueTree::Value(MakeKey(context, ckks::KeyId::Rotation(5, 8))),
                                   ValueTree::Value(MakeKey(context, ckks::KeyId::Conjugation())),
                                   ValueTree::Leaf(CountingTensor(DType::kComplex128, {}))};
  for (int i = 0; i < 4; ++i) {
    leaves.push_back(
        ValueTree::Value(MakePlaintext(context, static_cast<value::PlaintextRepresentation>(i))));
  }
  for (int i = 0; i <= static_cast<int>(value::ValueType::kSecretKey); ++i) {
    value::ExactValue value = MakeCiphertext(context, 0);
    value.type = static_cast<value::ValueType>(i);
    value.schema_version = 70000;
    value.context_id.reset();
    value.metadata.domain = value::PolynomialDomain::kCoefficient;
    value.metadata.basis = value::ModulusBasis::kQP;
    value.metadata.residue_representation = value::ResidueRepresentation::kMontgomery;
    leaves.push_back(ValueTree::Value(value));
  }
  for (int i = 0; i <= static_cast<int>(DType::kComplex128); ++i) {
    value::Tensor tensor = CountingTensor(static_cast<DType>(i), {2, 0, 3});
    tensor.set_requires_grad(i % 2 == 1);
    leaves.push_back(ValueTree::Leaf(tensor));
  }
  for (const ValueTree& leaf : leaves) {
    ASSERT_OK_AND_ASSIGN(const ValueTreeSignature signature, ValueTreeSignature::FromTree(leaf));
    ExpectRoundTrip(signature);
  }
  const ValueTree tree = ValueTree::Dict(
      {{"z", ValueTree::Tuple({leaves[0], ValueTree::List({}), ValueTree::Tuple({})})},
       {"a", ValueTree::List({ValueTree::Dict({{"k", leaves[1]}}), leaves[2]})}});
  ASSERT_OK_AND_ASSIGN(const ValueTreeSignature signature, ValueTreeSignature::FromTree(tree));
  ExpectRoundTrip(signature);
}

TEST(SignatureCodecTest, S6_StridesAndEveryBitOfAScaleAreKept) {
  ExpectRoundTrip(ValueTreeSignature::Leaf(
      TensorSignature{.shape = {4, 6}, .strides = {1, 40}, .dtype = DType::kFloat32}));
  for (const uint64_t bits :
       {uint64_t{0}, uint64_t{1}, uint64_t{1} << 63, uint64_t{0x7ff8000000000123},
        std::bit_cast<uint64_t>(std::numeric_limits<double>::infinity())}) {
    ValueSignature value = CiphertextSignature().value();
    for (auto& [key, field] : value.metadata) {
      if (key == "scale") field = std::bit_cast<double>(bits);
    }
    ExpectRoundTrip(ValueTreeSignature::Leaf(value));
  }
}

TEST(SignatureCodecTest, MetadataThatTheWireDoesNotHaveIsRefusedNotDropped) {
  const auto refuses = [](const char* key, value::MetadataField field) {
    ValueSignature value = CiphertextSignature().value();
    value.metadata = {{key, std::move(field)}};
    v1::ValueTreeSignature message;
    EXPECT_THAT(EncodeSignature(ValueTreeSignature::Leaf(value), "s", &message),
                IsRefusal(kInvalid, kMalformed, std::string("s.") + key));
  };
  refuses("colour", int64_t{3});
  refuses("depth", 3.0);
  refuses("domain", std::string("fourier"));
  refuses("scale", true);

  ValueSignature nameless = CiphertextSignature().value();
  nameless.type_name = "Text";
  v1::ValueTreeSignature message;
  EXPECT_THAT(EncodeSignature(ValueTreeSignature::Leaf(nameless), "s", &message),
              IsRefusal(kInvalid, kMalformed, "s.type"));
}

TEST(SignatureCodecTest, EachWrongFieldIsNamed) {
  struct Case {
    const char* path;
    v1::ErrorReason reason;
    void (*change)(v1::ValueSignature&);
  };
  const auto tensor = [](v1::ValueSignature& m) -> v1::TensorSignature& {
    return *m.mutable_tensors(0)->mutable_tensor();
  };
  static const auto& data = *new auto(tensor);
  const Case cases[] = {
      {"s.type", kMalformed, [](auto& m) { m.clear_type(); }},
      {"s.type", kMalformed, [](auto& m) { m.set_type(static_cast<v1::ValueType>(77)); }},
      {"s.context_id", kMalformed, [](auto& m) { m.set_context_id("short"); }},
      {"s.basis", kMalformed,
       [](auto& m) { m.mutable_metadata()->set_basis(static_cast<v1::ModulusBasis>(3)); }},
      {"s.tensors[0].name", kMalformed, [](auto& m) { m.mutable_tensors(0)->clear_name(); }},
      {"s.tensors[1].name", kMalformed, [](auto& m) { *m.add_tensors() = m.tensors(0); }},
      {"s.data.dtype", kMalformed, [](auto& m) { data(m).clear_dtype(); }},
      {"s.data.layout", kMalformed, [](auto& m) { data(m).clear_layout(); }},
      {"s.data.strides", kMalformed, [](auto& m) { data(m).mutable_strides()->RemoveLast(); }},
      {"s.data.rank", kLimit,
       [](auto& m) {
         for (int i = 0; i < 6; ++i) data(m).add_shape(1);
       }},
  };
  for (const Case& c : cases) {
    v1::ValueTreeSignature message = Encode(CiphertextSignature());
    c.change(*message.mutable_value());
    EXPECT_THAT(DecodeSignature(message, WireLimits(), "s"), IsRefusal(kInvalid, c.reason, c.path));
  }
}

TEST(SignatureCodecTest, StructureIsLimited) {
  WireLimits limits;
  limits.max_tree_nodes = 3;
  limits.max_tree_nesting = 1;
  const ValueTreeSignature leaf = CiphertextSignature();
  EXPECT_OK(DecodeSignature(Encode(ValueTreeSignature::Tuple({leaf, leaf})), limits, "s"));
  EXPECT_THAT(DecodeSignature(Encode(ValueTreeSignature::Tuple({leaf, leaf, leaf})), limits, "s"),
              IsRefusal(kInvalid, kLimit, "s[2].node_count"));
  EXPECT_THAT(DecodeSignature(Encode(ValueTreeSignature::Tuple({ValueTreeSignature::List({leaf})})),
                              limits, "s"),
              IsRefusal(kInvalid, kLimit, "s[0][0].nesting"));
  EXPECT_THAT(DecodeSignature({}, WireLimits(), "s"), IsRefusal(kInvalid, kMalformed, "s"));
  v1::ValueTreeSignature twice;
  twice.mutable_dict()->add_entries()->set_key("k");
  *twice.mutable_dict()->mutable_entries(0)->mutable_child() = Encode(leaf);
  *twice.mutable_dict()->add_entries() = twice.dict().entries(0);
  EXPECT_THAT(DecodeSignature(twice, WireLimits(), "s"), IsRefusal(kInvalid, kMalformed, "s"));
}

}  // namespace
}  // namespace cipherd::codec
