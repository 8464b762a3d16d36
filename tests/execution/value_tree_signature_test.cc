#include "core/execution/value_tree_signature.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/hash/hash_testing.h"
#include "tests/execution/execution_fixture.h"

namespace cipherd::testing {
namespace {

using execution::ValueTreeSignature;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using value::Tensor;
using value::TreeKind;
using value::ValueTree;

ValueTree Leaf(std::vector<int64_t> shape) {
  return ValueTree::Leaf(Tensor::AllocateHost(value::DType::kUint64, std::move(shape)).value());
}

ValueTree CiphertextTree(int64_t depth) {
  return ValueTree::Value(
      CiphertextOf(Tensor::AllocateHost(value::DType::kUint64, {1, 4}).value(), depth));
}

// dict{'values': list[ciphertext, ciphertext], 'mask': tuple(tensor)}.
ValueTree Example(int64_t first_depth = 3, int64_t second_depth = 3, int64_t mask_size = 2) {
  return ValueTree::Dict(
      {{"values", ValueTree::List({CiphertextTree(first_depth), CiphertextTree(second_depth)})},
       {"mask", ValueTree::Tuple({Leaf({mask_size})})}});
}

ValueTreeSignature SignatureOf(const ValueTree& tree) {
  return ValueTreeSignature::FromTree(tree).value();
}

class ValueTreeSignatureOnDeviceTest : public ExecutionTest {};

TEST_P(ValueTreeSignatureOnDeviceTest, S1_HostAndDeviceCopiesHaveEqualSignatures) {
  auto tree = [](Tensor tensor, Tensor data) {
    return ValueTree::Tuple(
        {ValueTree::Leaf(std::move(tensor)), ValueTree::Value(CiphertextOf(std::move(data)))});
  };
  const ValueTreeSignature host = SignatureOf(tree(HostWords({1}), PinnedWords({2})));
  EXPECT_EQ(host, SignatureOf(tree(DeviceWords({3}), DeviceWords({4}))));
  EXPECT_OK(host.Validate(tree(DeviceWords({3}), HostWords({4}))));
}

INSTANTIATE_ON_DEVICES(ValueTreeSignatureOnDeviceTest);

TEST(ValueTreeSignatureTest, S3_NestsLeavesInContainers) {
  const ValueTreeSignature signature = SignatureOf(Example());
  EXPECT_EQ(signature.kind(), TreeKind::kDict);
  EXPECT_THAT(signature.keys(), ElementsAre("values", "mask"));
  const ValueTreeSignature& values = signature.children()[0];
  EXPECT_EQ(values.kind(), TreeKind::kList);
  EXPECT_EQ(values.children()[1].value().type_name, "Ciphertext");
  EXPECT_THAT(signature.children()[1].children()[0].tensor().shape, ElementsAre(2));
  EXPECT_EQ(signature, SignatureOf(Example()));
}

TEST(ValueTreeSignatureTest, S3_StructureTellsTreesApart) {
  const std::vector<std::pair<ValueTree, ValueTree>> pairs = {
      {ValueTree::List({Leaf({1})}), ValueTree::Tuple({Leaf({1})})},
      {Leaf({1}), ValueTree::List({Leaf({1})})},
      {Leaf({1, 4}), Leaf({4})},  // a batch of one, and unbatched
      {ValueTree::Dict({{"a", Leaf({1})}}), ValueTree::Dict({{"b", Leaf({1})}})},
      {ValueTree::Dict({{"a", Leaf({1})}, {"b", Leaf({1})}}),
       ValueTree::Dict({{"b", Leaf({1})}, {"a", Leaf({1})}})},
      {ValueTree::List({}), ValueTree::List({ValueTree::List({})})},
      {ValueTree::Tuple({}), ValueTree::Dict({})},
  };
  for (const auto& [a, b] : pairs) {
    EXPECT_NE(SignatureOf(a), SignatureOf(b)) << SignatureOf(a);
    EXPECT_FALSE(SignatureOf(a).Validate(b).ok()) << SignatureOf(a);
    EXPECT_FALSE(SignatureOf(b).Validate(a).ok()) << SignatureOf(a);
  }
}

TEST(ValueTreeSignatureTest, S4_UnsupportedLeavesAreRefusedByPath) {
  EXPECT_THAT(ValueTreeSignature::FromTree(ValueTree::List({ValueTree::Opaque("int")}), "inputs"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("inputs[0]: ")));
  EXPECT_THAT(ValueTreeSignature::FromTree(ValueTree::None()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("value: ")));
  EXPECT_THAT(ValueTreeSignature::FromTree(ValueTree::Value(value::ExactValue())),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("without")));
  EXPECT_THAT(ValueTreeSignature::Dict({{"a", {}}, {"a", {}}}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'a'")));
}

TEST(ValueTreeSignatureTest, S5_TheFirstMismatchDepthFirstIsNamedByPath) {
  const ValueTreeSignature expected = SignatureOf(Example());
  EXPECT_OK(expected.Validate(Example(), "source"));
  const std::vector<std::pair<ValueTree, std::string>> cases = {
      {Example(2), "source['values'][0].depth: expected 3, got 2"},
      {Example(2, 1, 7), "source['values'][0].depth: expected 3, got 2"},
      {Example(3, 1, 7), "source['values'][1].depth: expected 3, got 1"},
      {Example(3, 3, 7), "source['mask'][0].shape: expected [2], got [7]"},
      {ValueTree::List({}), "source: expected dict, got list"},
      {ValueTree::Dict({{"values", ValueTree::List({})}}),
       "source.keys: expected ['values', 'mask'], got ['values']"},
      {ValueTree::Dict(
           {{"values", ValueTree::List({CiphertextTree(3)})}, {"mask", ValueTree::Opaque("int")}}),
       "source['values'].length: expected 2, got 1"},
      {ValueTree::Dict({{"values", ValueTree::List({CiphertextTree(3), ValueTree::Opaque("int")})},
                        {"mask", ValueTree::None()}}),
       "source['values'][1]: expected value, got int"},
      {ValueTree::Dict(
           {{"values", ValueTree::List({CiphertextTree(3), Leaf({1, 4})})}, {"mask", {}}}),
       "source['values'][1]: expected value, got tensor"},
  };
  for (const auto& [tree, message] : cases) {
    EXPECT_THAT(expected.Validate(tree, "source"),
                StatusIs(absl::StatusCode::kInvalidArgument, message));
  }
  EXPECT_THAT(expected.Validate(Example(2), "request"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("request['values']")));
}

TEST(ValueTreeSignatureTest, S6_HashesAgreeWithEquality) {
  EXPECT_TRUE(absl::VerifyTypeImplementsAbslHashCorrectly(std::vector<ValueTreeSignature>{
      SignatureOf(Example()), SignatureOf(Example()), SignatureOf(Example(2)),
      SignatureOf(Example(3, 3, 7)), SignatureOf(ValueTree::List({})),
      SignatureOf(ValueTree::Tuple({})), SignatureOf(ValueTree::Dict({{"a", Leaf({1})}})),
      SignatureOf(ValueTree::Dict({{"b", Leaf({1})}})), SignatureOf(Leaf({1}))}));
}

TEST(ValueTreeSignatureTest, S6_PrintsOnOneLineOrMany) {
  const ValueTreeSignature signature = SignatureOf(ValueTree::Dict(
      {{"mask", ValueTree::Tuple({Leaf({2}), ValueTree::List({})})}, {"x", Leaf({3})}}));
  EXPECT_EQ(signature.ToString(), "dict{'mask': tuple(uint64[2], list[]), 'x': uint64[3]}");
  EXPECT_EQ(signature.ToString(true),
            "dict{\n  'mask': tuple(\n    uint64[2],\n    list[]\n  ),\n  'x': uint64[3]\n}");
}

TEST(ValueTreeSignatureDeathTest, TheWrongAccessorIsFatal) {
  EXPECT_DEATH(SignatureOf(Leaf({1})).value(), "");
}

}  // namespace
}  // namespace cipherd::testing
