// Trees that are wrong as trees, whatever their values are.
#include <cstdint>
#include <string>

#include "gtest/gtest.h"
#include "proto/codec/tree_admission.h"
#include "tests/codec/wire_values.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::codec {
namespace {

using ::cipherd::testing::AcceptEverything;
using ::cipherd::testing::CountingTensor;
using ::cipherd::testing::Describe;
using ::cipherd::testing::IsRefusal;
using ::cipherd::testing::MakeCiphertext;
using ::cipherd::testing::SmallContext;
using value::DType;
using value::ValueTree;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kMalformed = v1::ERROR_REASON_MALFORMED_VALUE;
constexpr auto kLimit = v1::ERROR_REASON_LIMIT_EXCEEDED;

v1::ValueTree CiphertextTree() {
  return Describe(ValueTree::Tuple({ValueTree::Value(MakeCiphertext(*SmallContext(), 1)),
                                    ValueTree::Value(MakeCiphertext(*SmallContext(), 2))}));
}

absl::Status Admit(const v1::ValueTree& tree, const TreeExpectation& expectation,
                   const WireLimits& limits = {}) {
  return AdmitTree(tree, expectation, limits, "inputs").status();
}

// A leaf under `nesting` lists.
v1::ValueTree Nested(int nesting) {
  v1::ValueTree tree = Describe(ValueTree::Leaf(CountingTensor(DType::kUint8, {1})));
  for (int i = 0; i < nesting; ++i) {
    v1::ValueTree outer;
    outer.mutable_list()->add_children()->Swap(&tree);
    tree.Swap(&outer);
  }
  return tree;
}

TEST(HostileTreeTest, ANodeWithoutContentIsMalformed) {
  v1::ValueTree tree = CiphertextTree();
  EXPECT_THAT(Admit({}, AcceptEverything()), IsRefusal(kInvalid, kMalformed, "inputs"));
  tree.mutable_tuple()->add_children();
  EXPECT_THAT(Admit(tree, AcceptEverything()), IsRefusal(kInvalid, kMalformed, "inputs[2]"));
}

TEST(HostileTreeTest, NestingAndNodesAreLimitedExactly) {
  WireLimits limits;
  limits.max_tree_nesting = 3;
  EXPECT_OK(Admit(Nested(3), AcceptEverything(), limits));
  EXPECT_THAT(Admit(Nested(4), AcceptEverything(), limits),
              IsRefusal(kInvalid, kLimit, "inputs[0][0][0][0].nesting"));
  limits.max_tree_nodes = 3;
  EXPECT_OK(Admit(Nested(2), AcceptEverything(), limits));
  EXPECT_THAT(Admit(Nested(3), AcceptEverything(), limits),
              IsRefusal(kInvalid, kLimit, "inputs[0][0][0].node_count"));
}

TEST(HostileTreeTest, NestingBeyondWhatProtobufParsesIsAnErrorOfProtobuf) {
  v1::ValueTree parsed;
  EXPECT_TRUE(parsed.ParseFromString(Nested(24).SerializeAsString()));
  EXPECT_FALSE(parsed.ParseFromString(Nested(60).SerializeAsString()));
}

TEST(HostileTreeTest, KeysOfDictsAreShortReadableAndUnique) {
  const auto tree_with_keys = [](const std::string& a, const std::string& b) {
    const ValueTree leaf = ValueTree::Leaf(CountingTensor(DType::kUint8, {1}));
    v1::ValueTree tree = Describe(ValueTree::Dict({{"a", leaf}, {"b", leaf}}));
    tree.mutable_dict()->mutable_entries(0)->set_key(a);
    tree.mutable_dict()->mutable_entries(1)->set_key(b);
    return tree;
  };
  EXPECT_OK(Admit(tree_with_keys(std::string(64, 'k'), "~ key"), AcceptEverything()));
  EXPECT_THAT(Admit(tree_with_keys("x", std::string(65, 'k')), AcceptEverything()),
              IsRefusal(kInvalid, kLimit, "inputs.keys[1]"));
  EXPECT_THAT(Admit(tree_with_keys("", "x"), AcceptEverything()),
              IsRefusal(kInvalid, kMalformed, "inputs.keys[0]"));
  EXPECT_THAT(Admit(tree_with_keys("x", "x"), AcceptEverything()),
              IsRefusal(kInvalid, kMalformed, "inputs.keys[1]"));
  for (const char* key : {"it's", "quo\"te", "back\\slash", "new\nline", "\x7f", "h\xc3\xa9"}) {
    EXPECT_THAT(Admit(tree_with_keys("x", key), AcceptEverything()),
                IsRefusal(kInvalid, kMalformed, "inputs.keys[1]"));
  }
}

TEST(HostileTreeTest, BytesAreLimitedInSumAndSumsDoNotWrap) {
  v1::ValueTree tree = CiphertextTree();
  TreeExpectation expectation = AcceptEverything();
  const uint64_t total = (2 * 3 + 2 * 2) * 16 * 8;
  expectation.max_payload_bytes = total;
  EXPECT_OK(Admit(tree, expectation));
  expectation.max_payload_bytes = total - 1;
  EXPECT_THAT(Admit(tree, expectation), IsRefusal(kInvalid, kLimit, "inputs[1].byte_count"));

  expectation.max_payload_bytes = ~uint64_t{0};
  tree.mutable_tuple()
      ->mutable_children(1)
      ->mutable_value()
      ->mutable_tensors(0)
      ->mutable_tensor()
      ->set_byte_count(~uint64_t{0});
  EXPECT_THAT(Admit(tree, expectation), IsRefusal(kInvalid, kLimit, "inputs[1].byte_count"));
}

TEST(HostileTreeTest, APayloadThatIsThereMustHaveTheDeclaredLength) {
  TreeExpectation expectation = AcceptEverything();
  expectation.actual_payload_bytes = 1280;
  EXPECT_OK(Admit(CiphertextTree(), expectation));
  for (uint64_t bytes : {uint64_t{0}, uint64_t{1279}, uint64_t{1281}}) {
    expectation.actual_payload_bytes = bytes;
    EXPECT_THAT(Admit(CiphertextTree(), expectation),
                IsRefusal(kInvalid, kMalformed, "inputs.payload"));
  }
}

TEST(HostileTreeTest, ASecretKeyIsRefusedBeforeTheValuesAroundItAreLookedAt) {
  v1::ValueTree tree = CiphertextTree();
  tree.mutable_tuple()->mutable_children(0)->mutable_value()->set_schema_version(9);
  tree.mutable_tuple()->mutable_children(1)->mutable_value()->set_type(v1::VALUE_TYPE_SECRET_KEY);
  EXPECT_THAT(Admit(tree, AcceptEverything()),
              IsRefusal(kInvalid, v1::ERROR_REASON_SECRET_KEY_REFUSED, "inputs[1].type"));
}

TEST(HostileTreeTest, BareTensorsNeedAnExpectationThatTakesThem) {
  TreeExpectation expectation = AcceptEverything();
  expectation.bare_tensors = false;
  EXPECT_THAT(Admit(Nested(1), expectation),
              IsRefusal(kInvalid, v1::ERROR_REASON_SIGNATURE_MISMATCH, "inputs[0]"));
}

TEST(HostileTreeTest, ShapesOfBareTensorsNeverBecomeWrongSizes) {
  const auto admit_shape = [](const std::vector<int64_t>& shape, uint64_t bytes) {
    v1::ValueTree tree;
    tree.mutable_tensor()->set_dtype(v1::DTYPE_UINT64);
    tree.mutable_tensor()->set_encoding(v1::ENCODING_CANONICAL);
    for (int64_t dimension : shape) tree.mutable_tensor()->add_shape(dimension);
    tree.mutable_tensor()->set_byte_count(bytes);
    return Admit(tree, AcceptEverything());
  };
  const int64_t huge = int64_t{1} << 62;
  EXPECT_OK(admit_shape({}, 8));
  EXPECT_OK(admit_shape({0, 5}, 0));
  EXPECT_THAT(admit_shape({-1}, 0), IsRefusal(kInvalid, kMalformed, "inputs.shape"));
  EXPECT_THAT(admit_shape({huge, 4}, 0), IsRefusal(kInvalid, kMalformed, "inputs.shape"));
  EXPECT_THAT(admit_shape({huge}, 0), IsRefusal(kInvalid, kMalformed, "inputs.shape"));
  // Without an element, but with strides that no number holds.
  EXPECT_THAT(admit_shape({0, huge, huge}, 0), IsRefusal(kInvalid, kMalformed, "inputs.shape"));
  EXPECT_THAT(admit_shape({3}, 23), IsRefusal(kInvalid, kMalformed, "inputs.byte_count"));
  EXPECT_THAT(admit_shape(std::vector<int64_t>(9, 1), 8),
              IsRefusal(kInvalid, kLimit, "inputs.rank"));
}

}  // namespace
}  // namespace cipherd::codec
