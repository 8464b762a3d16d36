#include "core/value/value_tree.h"

#include <string>
#include <utility>
#include <vector>

#include "tests/testing/status_matchers.h"

namespace cipherd::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using value::DType;
using value::ExactValue;
using value::Tensor;
using value::ValueTree;

Tensor HostTensor(std::vector<int64_t> shape) {
  return Tensor::AllocateHost(DType::kUint64, std::move(shape)).value();
}

ExactValue ValueWith(std::vector<std::string> names) {
  ExactValue exact;
  for (const std::string& name : names) exact.tensors.emplace_back(name, HostTensor({1}));
  return exact;
}

// tuple(tensor, dict{'values': list[value{data, seed}], 'rest': tuple()}).
ValueTree Example() {
  return ValueTree::Tuple(
      {ValueTree::Leaf(HostTensor({2})),
       ValueTree::Dict(
           {{"values", ValueTree::List({ValueTree::Value(ValueWith({"data", "seed"}))})},
            {"rest", ValueTree::Tuple({})}})});
}

std::vector<std::string> PathsOf(const ValueTree& tree) {
  std::vector<std::string> paths;
  EXPECT_OK(value::ForEachTensor(tree, "source", [&](const std::string& path, const Tensor&) {
    paths.push_back(path);
    return absl::OkStatus();
  }));
  return paths;
}

TEST(ValueTreeTest, TensorsAreVisitedDepthFirstWithTheirPaths) {
  EXPECT_THAT(PathsOf(Example()), ElementsAre("source[0]", "source[1]['values'][0].data",
                                              "source[1]['values'][0].seed"));
  EXPECT_EQ(value::TensorsOf(Example()).size(), 3u);
}

TEST(ValueTreeTest, KeysAreEscapedInPaths) {
  EXPECT_EQ(value::ChildPath("x", "a'b\n"), "x['a\\'b\\n']");
}

TEST(ValueTreeTest, AVisitStopsAtTheFirstError) {
  int visits = 0;
  const absl::Status status =
      value::ForEachTensor(Example(), "source", [&](const std::string& path, const Tensor&) {
        ++visits;
        return visits == 2 ? absl::InternalError(path) : absl::OkStatus();
      });
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal, "source[1]['values'][0].data"));
  EXPECT_EQ(visits, 2);
}

TEST(ValueTreeTest, MappingKeepsStructureAndState) {
  ValueTree source = Example();
  ASSERT_OK_AND_ASSIGN(ValueTree mapped,
                       value::MapTensors(source, "source", [](const std::string&, const Tensor&) {
                         return absl::StatusOr<Tensor>(HostTensor({7}));
                       }));
  EXPECT_EQ(PathsOf(mapped), PathsOf(source));
  EXPECT_THAT(mapped[1].keys(), ElementsAre("values", "rest"));
  EXPECT_THAT(mapped[1]["values"][0].exact_value().FindTensor("seed")->shape(), ElementsAre(7));
  EXPECT_THAT(source[0].tensor().shape(), ElementsAre(2));
}

TEST(ValueTreeTest, MappingKeepsWhatHoldsNoTensor) {
  const ValueTree source = ValueTree::List({ValueTree::None(), ValueTree::Opaque("int")});
  ASSERT_OK_AND_ASSIGN(ValueTree mapped,
                       value::MapTensors(source, "source", [](const std::string&, const Tensor&) {
                         return absl::StatusOr<Tensor>(absl::InternalError("no tensor here"));
                       }));
  EXPECT_EQ(mapped[0].kind(), value::TreeKind::kNone);
  EXPECT_EQ(mapped[1].opaque_description(), "int");
}

TEST(ValueTreeTest, TensorsOfAValueAreOrderedByName) {
  const ValueTree tree = ValueTree::Value(ValueWith({"seed", "data"}));
  EXPECT_EQ(tree.exact_value().tensors[0].first, "data");
  EXPECT_EQ(tree.exact_value().tensors[1].first, "seed");
}

TEST(ValueTreeTest, UnsupportedTreesAreRefusedByPath) {
  EXPECT_OK(value::CheckSupported(Example(), "source"));
  const std::vector<std::pair<ValueTree, std::string>> cases = {
      {ValueTree::None(),
       "source: expected a tensor, an exact value or a container of them, got none"},
      {ValueTree::List({ValueTree::Opaque("int")}),
       "source[0]: expected a tensor, an exact value or"},
      {ValueTree::Opaque("set"), "got set"},
      {ValueTree::Value(ExactValue()),
       "source: expected a value with tensors, got a Ciphertext without"},
      {ValueTree::Value(ValueWith({"data", "data"})), "source: two tensors are called 'data'"},
      {ValueTree::Dict({{"a", ValueTree::Tuple({})}, {"a", ValueTree::Tuple({})}}),
       "source: two entries have the key 'a'"},
  };
  for (const auto& [tree, message] : cases) {
    EXPECT_THAT(value::CheckSupported(tree, "source"),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  }
}

TEST(ValueTreeTest, AliasedLeavesAreRefusedByBothPaths) {
  EXPECT_OK(value::RefuseAliases(Example(), "source"));
  const Tensor shared = HostTensor({4});
  const ValueTree aliased = ValueTree::Dict(
      {{"a", ValueTree::Leaf(shared)}, {"b", ValueTree::List({ValueTree::Leaf(shared)})}});
  EXPECT_THAT(
      value::RefuseAliases(aliased, "source"),
      StatusIs(absl::StatusCode::kInvalidArgument,
               "source['b'][0]: expected storage of its own, got the storage of source['a']"));
  const Tensor empty = HostTensor({0});
  EXPECT_OK(value::RefuseAliases(ValueTree::List({ValueTree::Leaf(empty), ValueTree::Leaf(empty)}),
                                 "source"));
}

TEST(ValueTreeTest, Helpers_NbytesSumsThePayloadWithoutGaps) {
  ASSERT_OK_AND_ASSIGN(runtime::StoragePtr storage, runtime::AllocatePageable(64));
  ASSERT_OK_AND_ASSIGN(Tensor gaps,
                       Tensor::FromStorage(storage, 0, DType::kUint64, {2, 3}, {5, 1}));
  const ValueTree tree =
      ValueTree::List({ValueTree::Leaf(gaps), Example(), ValueTree::Leaf(HostTensor({0}))});
  EXPECT_EQ(value::ValueTreeNbytes(tree), 48 + 16 + 8 + 8);
  EXPECT_EQ(value::ValueTreeNbytes(ValueTree::None()), 0);
}

TEST(ValueTreeDeathTest, TheWrongAccessorIsFatal) {
  EXPECT_DEATH(Example()["values"], "");
  EXPECT_DEATH(Example().tensor(), "");
}

}  // namespace
}  // namespace cipherd::testing
