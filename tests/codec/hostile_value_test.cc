// Each field of each check of value_admission.h and tree_admission.h wrong, one at a time; then two
// at a time, so that the order of the checks shows.
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "proto/codec/tree_admission.h"
#include "proto/codec/value_admission.h"
#include "tests/codec/wire_values.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::codec {
namespace {

using ::cipherd::testing::AcceptEverything;
using ::cipherd::testing::CountingTensor;
using ::cipherd::testing::Describe;
using ::cipherd::testing::IsRefusal;
using ::cipherd::testing::MakeCiphertext;
using ::cipherd::testing::MakeKey;
using ::cipherd::testing::MakePlaintext;
using ::cipherd::testing::MakePublicKey;
using ::cipherd::testing::OtherContext;
using ::cipherd::testing::SmallContext;
using value::PlaintextRepresentation;
using value::ValueTree;
using Message = v1::ExactValue;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kUnimplemented = absl::StatusCode::kUnimplemented;
constexpr auto kMalformed = v1::ERROR_REASON_MALFORMED_VALUE;
constexpr auto kLimit = v1::ERROR_REASON_LIMIT_EXCEEDED;
constexpr auto kSignature = v1::ERROR_REASON_SIGNATURE_MISMATCH;
constexpr auto kUnsupported = v1::ERROR_REASON_UNSUPPORTED;
constexpr auto kContext = v1::ERROR_REASON_WRONG_CONTEXT;

v1::Tensor& Data(Message& m) { return *m.mutable_tensors(0)->mutable_tensor(); }
v1::ValueMetadata& Meta(Message& m) { return *m.mutable_metadata(); }

Message Ciphertext() { return Describe(MakeCiphertext(*SmallContext(), 1)); }
Message Rotation() { return Describe(MakeKey(*SmallContext(), ckks::KeyId::Rotation(3, 8))); }
Message Conjugation() { return Describe(MakeKey(*SmallContext(), ckks::KeyId::Conjugation())); }
Message Relinearization() {
  return Describe(MakeKey(*SmallContext(), ckks::KeyId::Relinearization()));
}
Message RnsPlaintext() {
  return Describe(MakePlaintext(*SmallContext(), PlaintextRepresentation::kRns));
}
Message SlotsPlaintext() {
  return Describe(MakePlaintext(*SmallContext(), PlaintextRepresentation::kSlots));
}
Message IntegerPlaintext() {
  return Describe(MakePlaintext(*SmallContext(), PlaintextRepresentation::kIntegerCoefficients));
}
Message PublicKey() { return Describe(MakePublicKey(*SmallContext())); }

struct HostileCase {
  const char* name;
  Message (*base)();
  void (*change)(Message&);
  const char* path;  // below the value
  v1::ErrorReason reason = kMalformed;
  absl::StatusCode code = kInvalid;
};
std::ostream& operator<<(std::ostream& out, const HostileCase& c) { return out << c.name; }

absl::Status Admit(const Message& message) {
  const TreeExpectation all = AcceptEverything();
  return AdmitValue(message, all.contexts, all.types, all.max_payload_bytes, WireLimits(), "value")
      .status();
}

class HostileValueTest : public ::testing::TestWithParam<HostileCase> {};

TEST_P(HostileValueTest, IsRefusedWithItsReasonAndPath) {
  const HostileCase& c = GetParam();
  Message message = c.base();
  ASSERT_OK(Admit(message));
  c.change(message);
  EXPECT_THAT(Admit(message), IsRefusal(c.code, c.reason, std::string("value") + c.path));
  // The same below a tree, and no trace of it in what comes next.
  v1::ValueTree tree;
  *tree.mutable_tuple()->add_children()->mutable_value() = c.base();
  *tree.mutable_tuple()->add_children()->mutable_value() = message;
  EXPECT_THAT(AdmitTree(tree, AcceptEverything(), WireLimits(), "tree"),
              IsRefusal(c.code, c.reason, std::string("tree[1]") + c.path));
  EXPECT_OK(Admit(c.base()));
}

const HostileCase kCases[] = {
    {"SecretKey", Ciphertext, [](Message& m) { m.set_type(v1::VALUE_TYPE_SECRET_KEY); }, ".type",
     v1::ERROR_REASON_SECRET_KEY_REFUSED},
    // 1: counts and byte caps.
    {"TwoTensors", Ciphertext, [](Message& m) { *m.add_tensors() = m.tensors(0); }, ".tensors",
     kLimit},
    {"LongName", Ciphertext,
     [](Message& m) { m.mutable_tensors(0)->set_name(std::string(65, 'd')); }, ".tensors[0].name",
     kLimit},
    {"NoName", Ciphertext, [](Message& m) { m.mutable_tensors(0)->clear_name(); },
     ".tensors[0].name"},
    {"NameWithQuote", Ciphertext, [](Message& m) { m.mutable_tensors(0)->set_name("da'ta"); },
     ".tensors[0].name"},
    {"NameWithNewline", Ciphertext, [](Message& m) { m.mutable_tensors(0)->set_name("data\n"); },
     ".tensors[0].name"},
    {"HighRank", Ciphertext,
     [](Message& m) {
       for (int i = 0; i < 6; ++i) Data(m).add_shape(1);
     },
     ".data.rank", kLimit},
    {"ManyPrimeIds", Ciphertext,
     [](Message& m) {
       for (int i = 0; i < 65; ++i) Meta(m).mutable_prime_ids()->add_id(i);
     },
     ".prime_ids", kLimit},
    // 2: type, schema, fields, tensors, dtype, encoding.
    {"NoType", Ciphertext, [](Message& m) { m.clear_type(); }, ".type"},
    {"UnknownType", Ciphertext, [](Message& m) { m.set_type(static_cast<v1::ValueType>(10)); },
     ".type"},
    {"NegativeType", Ciphertext, [](Message& m) { m.set_type(static_cast<v1::ValueType>(-1)); },
     ".type"},
    {"CompressedPlaintext", Ciphertext,
     [](Message& m) { m.set_type(v1::VALUE_TYPE_COMPRESSED_PLAINTEXT); }, ".type", kUnsupported,
     kUnimplemented},
    {"NoSchemaVersion", Ciphertext, [](Message& m) { m.clear_schema_version(); }, ".schema_version",
     kUnsupported, kUnimplemented},
    {"LaterSchemaVersion", Ciphertext, [](Message& m) { m.set_schema_version(2); },
     ".schema_version", kUnsupported, kUnimplemented},
    {"UnknownDomain", Ciphertext,
     [](Message& m) { Meta(m).set_domain(static_cast<v1::PolynomialDomain>(3)); }, ".domain"},
    {"UnknownBasis", Ciphertext,
     [](Message& m) { Meta(m).set_basis(static_cast<v1::ModulusBasis>(9)); }, ".basis"},
    {"UnknownResidueRepresentation", Ciphertext,
     [](Message& m) {
       Meta(m).set_residue_representation(static_cast<v1::ResidueRepresentation>(3));
     },
     ".residue_representation"},
    {"UnknownPlaintextRepresentation", RnsPlaintext,
     [](Message& m) {
       Meta(m).set_plaintext_representation(static_cast<v1::PlaintextRepresentation>(5));
     },
     ".plaintext_representation"},
    {"PlaintextWithoutRepresentation", RnsPlaintext,
     [](Message& m) { Meta(m).clear_plaintext_representation(); }, ".plaintext_representation"},
    {"NoMetadata", Ciphertext, [](Message& m) { m.clear_metadata(); }, ".basis"},
    {"NoBasis", Ciphertext, [](Message& m) { Meta(m).clear_basis(); }, ".basis"},
    {"NoDepth", Ciphertext, [](Message& m) { Meta(m).clear_depth(); }, ".depth"},
    {"NoDomain", Ciphertext, [](Message& m) { Meta(m).clear_domain(); }, ".domain"},
    {"NoPrimeIds", Ciphertext, [](Message& m) { Meta(m).clear_prime_ids(); }, ".prime_ids"},
    {"NoResidueRepresentation", Ciphertext,
     [](Message& m) { Meta(m).clear_residue_representation(); }, ".residue_representation"},
    {"NoScale", Ciphertext, [](Message& m) { Meta(m).clear_scale(); }, ".scale"},
    {"NoDigitCount", Rotation, [](Message& m) { Meta(m).clear_digit_count(); }, ".digit_count"},
    {"NoRotationStep", Rotation, [](Message& m) { Meta(m).clear_rotation_step(); },
     ".rotation_step"},
    {"NoGaloisElement", Rotation, [](Message& m) { Meta(m).clear_galois_element(); },
     ".galois_element"},
    {"CiphertextWithRotationStep", Ciphertext, [](Message& m) { Meta(m).set_rotation_step(0); },
     ".rotation_step"},
    {"CiphertextWithDigitCount", Ciphertext, [](Message& m) { Meta(m).set_digit_count(2); },
     ".digit_count"},
    {"CiphertextWithPlaintextRepresentation", Ciphertext,
     [](Message& m) { Meta(m).set_plaintext_representation(v1::PLAINTEXT_REPRESENTATION_RNS); },
     ".plaintext_representation"},
    {"KeyWithDepth", Relinearization, [](Message& m) { Meta(m).set_depth(0); }, ".depth"},
    {"KeyWithScale", Relinearization, [](Message& m) { Meta(m).set_scale(1024); }, ".scale"},
    {"RelinearizationKeyWithGaloisElement", Relinearization,
     [](Message& m) { Meta(m).set_galois_element(5); }, ".galois_element"},
    {"ConjugationKeyWithRotationStep", Conjugation,
     [](Message& m) { Meta(m).set_rotation_step(1); }, ".rotation_step"},
    {"SlotsWithScale", SlotsPlaintext, [](Message& m) { Meta(m).set_scale(1024); }, ".scale"},
    {"NoTensor", Ciphertext, [](Message& m) { m.clear_tensors(); }, ".tensors"},
    {"OtherTensor", Ciphertext, [](Message& m) { m.mutable_tensors(0)->set_name("date"); },
     ".tensors[0].name"},
    {"NoDtype", Ciphertext, [](Message& m) { Data(m).clear_dtype(); }, ".data.dtype"},
    {"UnknownDtype", Ciphertext, [](Message& m) { Data(m).set_dtype(static_cast<v1::DType>(9)); },
     ".data.dtype"},
    {"SignedResidues", Ciphertext, [](Message& m) { Data(m).set_dtype(v1::DTYPE_INT64); },
     ".data.dtype"},
    {"FloatIntegers", IntegerPlaintext, [](Message& m) { Data(m).set_dtype(v1::DTYPE_FLOAT64); },
     ".data.dtype"},
    {"NoEncoding", Ciphertext, [](Message& m) { Data(m).clear_encoding(); }, ".data.encoding"},
    {"UnknownEncoding", Ciphertext,
     [](Message& m) { Data(m).set_encoding(static_cast<v1::Encoding>(4)); }, ".data.encoding"},
    {"PackedEncoding", Ciphertext, [](Message& m) { Data(m).set_encoding(v1::ENCODING_PACKED); },
     ".data.encoding", kUnsupported, kUnimplemented},
    {"SeededEncoding", Ciphertext, [](Message& m) { Data(m).set_encoding(v1::ENCODING_SEEDED); },
     ".data.encoding", kUnsupported, kUnimplemented},
    {"NoShape", Ciphertext, [](Message& m) { Data(m).clear_shape(); }, ".data.shape"},
    {"LowRank", Ciphertext, [](Message& m) { Data(m).mutable_shape()->RemoveLast(); },
     ".data.shape"},
    {"KeyWithBatch", Rotation, [](Message& m) { Data(m).add_shape(1); }, ".data.shape"},
    {"PublicKeyWithBatch", PublicKey, [](Message& m) { Data(m).add_shape(1); }, ".data.shape"},
    // 3: context.
    {"NoContext", Ciphertext, [](Message& m) { m.clear_context_id(); }, ".context_id", kContext},
    {"ShortContext", Ciphertext, [](Message& m) { m.mutable_context_id()->pop_back(); },
     ".context_id", kContext},
    {"ForeignContext", Ciphertext, [](Message& m) { m.set_context_id(OtherContext()->id_bytes()); },
     ".context_id", kContext},
    // 4: ring degree, prime ids and their order.
    {"OtherRingDegree", Ciphertext, [](Message& m) { Data(m).set_shape(2, 32); }, ".data.shape"},
    {"NegativeRingDegree", Ciphertext, [](Message& m) { Data(m).set_shape(2, -16); },
     ".data.shape"},
    {"TooManySlots", SlotsPlaintext, [](Message& m) { Data(m).set_shape(1, 9); }, ".data.shape"},
    {"NoSlots", SlotsPlaintext, [](Message& m) { Data(m).set_shape(1, 0); }, ".data.shape"},
    {"EmptyPrimeIds", Ciphertext, [](Message& m) { Meta(m).mutable_prime_ids()->clear_id(); },
     ".prime_ids"},
    {"PrimeIdOutOfRange", Ciphertext, [](Message& m) { Meta(m).mutable_prime_ids()->set_id(2, 6); },
     ".prime_ids"},
    {"NegativePrimeId", Ciphertext, [](Message& m) { Meta(m).mutable_prime_ids()->set_id(0, -1); },
     ".prime_ids"},
    {"PrimeIdsOutOfOrder", Ciphertext,
     [](Message& m) { Meta(m).mutable_prime_ids()->mutable_id()->SwapElements(0, 1); },
     ".prime_ids"},
    {"PrimeIdTwice", Ciphertext, [](Message& m) { Meta(m).mutable_prime_ids()->set_id(1, 1); },
     ".prime_ids"},
    {"LimbsWithoutPrimes", Ciphertext, [](Message& m) { Data(m).set_shape(1, 4); }, ".data.shape"},
    {"KeyWithoutP", Rotation,
     [](Message& m) {
       Meta(m).mutable_prime_ids()->mutable_id()->Truncate(4);
       Data(m).set_shape(2, 4);
     },
     ".prime_ids"},
    {"PublicKeyWithoutFirstPrime", PublicKey,
     [](Message& m) {
       Meta(m).mutable_prime_ids()->mutable_id()->erase(Meta(m).prime_ids().id().begin());
       Data(m).set_shape(1, 3);
     },
     ".prime_ids"},
    // 5: depth.
    {"NegativeDepth", Ciphertext, [](Message& m) { Meta(m).set_depth(-1); }, ".depth"},
    {"DepthBeyondContext", Ciphertext, [](Message& m) { Meta(m).set_depth(4); }, ".depth"},
    {"HugeDepth", Ciphertext, [](Message& m) { Meta(m).set_depth(int64_t{1} << 32 | 1); },
     ".depth"},
    {"DepthOfOtherPrimes", Ciphertext, [](Message& m) { Meta(m).set_depth(2); }, ".prime_ids"},
    // 6: components, digits.
    {"OneComponent", Ciphertext, [](Message& m) { Data(m).set_shape(0, 1); }, ".data.shape"},
    {"FourComponents", Ciphertext, [](Message& m) { Data(m).set_shape(0, 4); }, ".data.shape"},
    {"NegativeComponents", Ciphertext, [](Message& m) { Data(m).set_shape(0, -2); }, ".data.shape"},
    {"KeyOfThreeDigits", Rotation, [](Message& m) { Data(m).set_shape(0, 3); }, ".data.shape"},
    {"KeyOfThreeComponents", Rotation, [](Message& m) { Data(m).set_shape(1, 3); }, ".data.shape"},
    {"PublicKeyOfThreeComponents", PublicKey, [](Message& m) { Data(m).set_shape(0, 3); },
     ".data.shape"},
    // 7: dims × element size = bytes.
    {"TooFewBytes", Ciphertext, [](Message& m) { Data(m).set_byte_count(2 * 3 * 16 * 8 - 8); },
     ".data.byte_count"},
    {"TooManyBytes", Ciphertext, [](Message& m) { Data(m).set_byte_count(2 * 3 * 16 * 8 + 1); },
     ".data.byte_count"},
    {"NoBytes", Ciphertext, [](Message& m) { Data(m).clear_byte_count(); }, ".data.byte_count"},
    {"ZeroBatch", Ciphertext,
     [](Message& m) {
       Data(m).clear_shape();
       for (int64_t dimension : {2, 0, 3, 16}) Data(m).add_shape(dimension);
       Data(m).set_byte_count(0);
     },
     ".data.shape"},
    {"SizeOverflowsToTheDeclaredBytes", Ciphertext,
     [](Message& m) {
       // 2 · 2^61 · 3 · 16 · 8 = 0 mod 2^64.
       Data(m).clear_shape();
       for (int64_t dimension : {int64_t{2}, int64_t{1} << 61, int64_t{3}, int64_t{16}}) {
         Data(m).add_shape(dimension);
       }
       Data(m).set_byte_count(0);
     },
     ".data.shape"},
    // 8: domain, basis and representation together.
    {"CiphertextInQP", Ciphertext, [](Message& m) { Meta(m).set_basis(v1::MODULUS_BASIS_QP); },
     ".basis"},
    {"KeyInQ", Rotation, [](Message& m) { Meta(m).set_basis(v1::MODULUS_BASIS_Q); }, ".basis"},
    {"KeyOfCoefficients", Rotation,
     [](Message& m) { Meta(m).set_domain(v1::POLYNOMIAL_DOMAIN_COEFFICIENT); }, ".domain"},
    {"MontgomeryResidues", Ciphertext,
     [](Message& m) { Meta(m).set_residue_representation(v1::RESIDUE_REPRESENTATION_MONTGOMERY); },
     ".residue_representation"},
    // 9: scale.
    {"ScaleZero", Ciphertext, [](Message& m) { Meta(m).set_scale(0); }, ".scale"},
    {"ScaleNegative", Ciphertext, [](Message& m) { Meta(m).set_scale(-1024); }, ".scale"},
    {"ScaleBelowOne", Ciphertext, [](Message& m) { Meta(m).set_scale(0.999); }, ".scale"},
    {"ScaleInfinite", Ciphertext,
     [](Message& m) { Meta(m).set_scale(std::numeric_limits<double>::infinity()); }, ".scale"},
    {"ScaleNaN", Ciphertext,
     [](Message& m) { Meta(m).set_scale(std::numeric_limits<double>::quiet_NaN()); }, ".scale"},
    {"ScaleAboveTheActiveModulus", Ciphertext,
     [](Message& m) { Meta(m).set_scale(std::ldexp(1, 101)); }, ".scale"},
    {"IntegerPlaintextScaleZero", IntegerPlaintext, [](Message& m) { Meta(m).set_scale(0); },
     ".scale"},
    // 10: keys.
    {"OtherDigitCount", Rotation, [](Message& m) { Meta(m).set_digit_count(3); }, ".digit_count"},
    {"StepZero", Rotation, [](Message& m) { Meta(m).set_rotation_step(0); }, ".rotation_step"},
    {"StepOfAllSlots", Rotation, [](Message& m) { Meta(m).set_rotation_step(8); },
     ".rotation_step"},
    {"StepNegative", Rotation, [](Message& m) { Meta(m).set_rotation_step(-1); }, ".rotation_step"},
    {"StepOfAnotherElement", Rotation, [](Message& m) { Meta(m).set_rotation_step(2); },
     ".galois_element"},
    {"GaloisElementEven", Rotation, [](Message& m) { Meta(m).set_galois_element(30); },
     ".galois_element"},
    {"GaloisElementBeyondTwoN", Rotation,
     [](Message& m) { Meta(m).set_galois_element(Meta(m).galois_element() + 32); },
     ".galois_element"},
    {"GaloisElementNegative", Rotation,
     [](Message& m) { Meta(m).set_galois_element(Meta(m).galois_element() - 32); },
     ".galois_element"},
    {"ConjugationWithRotationElement", Conjugation,
     [](Message& m) { Meta(m).set_galois_element(5); }, ".galois_element"},
};

INSTANTIATE_TEST_SUITE_P(Cases, HostileValueTest, ::testing::ValuesIn(kCases),
                         [](const auto& info) { return std::string(info.param.name); });

// One fault a step, in the order of the steps. Each leaves the faults of later steps possible.
struct Fault {
  const char* path;
  void (*change)(Message&);
};
const Fault kFaultsInOrder[] = {
    {"value.type", [](Message& m) { m.set_type(v1::VALUE_TYPE_SECRET_KEY); }},
    {"value.tensors", [](Message& m) { *m.add_tensors() = m.tensors(0); }},
    {"value.schema_version", [](Message& m) { m.set_schema_version(7); }},
    {"value.data.dtype", [](Message& m) { Data(m).set_dtype(v1::DTYPE_UNSPECIFIED); }},
    {"value.data.encoding", [](Message& m) { Data(m).set_encoding(v1::ENCODING_UNSPECIFIED); }},
    {"value.context_id", [](Message& m) { m.set_context_id(OtherContext()->id_bytes()); }},
    {"value.data.shape", [](Message& m) { Data(m).set_shape(3, 8); }},
    {"value.prime_ids", [](Message& m) { Meta(m).mutable_prime_ids()->set_id(0, 1); }},
    {"value.data.shape", [](Message& m) { Data(m).set_shape(0, 5); }},
    {"value.data.byte_count", [](Message& m) { Data(m).set_byte_count(8); }},
    {"value.basis", [](Message& m) { Meta(m).set_basis(v1::MODULUS_BASIS_Q); }},
    {"value.digit_count", [](Message& m) { Meta(m).set_digit_count(1); }},
    {"value.rotation_step", [](Message& m) { Meta(m).set_rotation_step(8); }},
    {"value.galois_element", [](Message& m) { Meta(m).set_galois_element(2); }},
};

TEST(OrderOfChecksTest, AKeyWrongInTwoWaysReportsTheEarlierCheck) {
  const int count = static_cast<int>(std::size(kFaultsInOrder));
  for (int first = 0; first < count; ++first) {
    for (int second = first; second < count; ++second) {
      SCOPED_TRACE(std::to_string(first) + " and " + std::to_string(second));
      Message message = Rotation();
      // The later one first, so that its change does not look at the earlier one's.
      kFaultsInOrder[second].change(message);
      if (second != first) kFaultsInOrder[first].change(message);
      const absl::Status status = Admit(message);
      ASSERT_FALSE(status.ok());
      EXPECT_EQ(GetErrorDetail(status)->path(), kFaultsInOrder[first].path)
          << std::string(status.message());
    }
  }
}

const Fault kCiphertextFaultsInOrder[] = {
    {"value.data.shape", [](Message& m) { Data(m).set_shape(2, 8); }},
    {"value.depth", [](Message& m) { Meta(m).set_depth(4); }},
    {"value.data.shape", [](Message& m) { Data(m).set_shape(0, 4); }},
    {"value.data.byte_count", [](Message& m) { Data(m).set_byte_count(8); }},
    {"value.residue_representation",
     [](Message& m) { Meta(m).set_residue_representation(v1::RESIDUE_REPRESENTATION_MONTGOMERY); }},
    {"value.scale", [](Message& m) { Meta(m).set_scale(0); }},
};

TEST(OrderOfChecksTest, ACiphertextWrongInTwoWaysReportsTheEarlierCheck) {
  const int count = static_cast<int>(std::size(kCiphertextFaultsInOrder));
  for (int first = 0; first < count; ++first) {
    for (int second = first; second < count; ++second) {
      SCOPED_TRACE(std::to_string(first) + " and " + std::to_string(second));
      Message message = Ciphertext();
      kCiphertextFaultsInOrder[second].change(message);
      if (second != first) kCiphertextFaultsInOrder[first].change(message);
      const absl::Status status = Admit(message);
      ASSERT_FALSE(status.ok());
      EXPECT_EQ(GetErrorDetail(status)->path(), kCiphertextFaultsInOrder[first].path)
          << std::string(status.message());
    }
  }
}

TEST(HostileValueTest, ATypeThatIsNotAskedForIsNamedWithThoseThatAre) {
  const TreeExpectation all = AcceptEverything();
  const absl::Status refusal =
      AdmitValue(Rotation(), all.contexts, kOperandTypes, 1 << 20, WireLimits(), "value").status();
  EXPECT_THAT(refusal, IsRefusal(kInvalid, kSignature, "value.type"));
  EXPECT_EQ(std::string(refusal.message()),
            "value.type: expected Ciphertext or Plaintext, got RotationKey");
}

TEST(HostileValueTest, ThePayloadCapIsExact) {
  const TreeExpectation all = AcceptEverything();
  const uint64_t bytes = Ciphertext().tensors(0).tensor().byte_count();
  EXPECT_OK(AdmitValue(Ciphertext(), all.contexts, all.types, bytes, WireLimits(), "value"));
  EXPECT_THAT(AdmitValue(Ciphertext(), all.contexts, all.types, bytes - 1, WireLimits(), "value"),
              IsRefusal(kInvalid, kLimit, "value.data.byte_count"));
}

}  // namespace
}  // namespace cipherd::codec
