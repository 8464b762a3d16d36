#include "core/planning/model_check.h"

#include <cmath>
#include <string>

#include "gtest/gtest.h"
#include "tests/planning/random_model.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::planning {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

// x [1, 6, 6] -> c [2, 4, 4] -> s -> y [3], and z [4, 5] -> picked.
Model Lawful() {
  RandomModel model(1);
  model.Input("x", {1, 6, 6});
  model.Input("z", {4, 5});
  model.Conv("c", "x", {2, 1, 3, 3}, {});
  model.Square("s", "c");
  model.Linear("y", "s", 3);
  model.model().constants["i"] = TensorOf({2}, std::vector<int64_t>{3, 19});
  model.Add({.name = "picked", .kind = ModelKind::kSelect, .a = "z", .indices = "i"});
  model.Output("y");
  model.Output("picked");
  return model.model();
}

// The message of the refusal of a lawful model after `change`.
template <typename Change>
std::string RefusalAfter(Change change) {
  Model model = Lawful();
  change(model);
  const absl::Status status = CheckModel(model).status();
  EXPECT_EQ(status.code(), kInvalid) << status.ToString();
  return std::string(status.message());
}

// The same with one more operation, whose edge is an output.
std::string RefusalOf(ModelOperation operation) {
  return RefusalAfter([&](Model& model) {
    operation.name = "new";
    model.operations.push_back(operation);
    model.outputs.push_back({"new", "new"});
    model.constants["two"] = TensorOf({2}, std::vector<double>{1, 2});
    model.constants["weight"] = TensorOf({4, 2}, std::vector<double>(8, 1.0));
    model.constants["nan"] = TensorOf({1}, std::vector<double>{NAN});
  });
}

TEST(ModelCheckTest, GivesShapes) {
  ASSERT_OK_AND_ASSIGN(const ModelShapes shapes, CheckModel(Lawful()));
  EXPECT_EQ(shapes.at("x"), (Shape{1, 6, 6}));
  EXPECT_EQ(shapes.at("c"), (Shape{2, 4, 4}));
  EXPECT_EQ(shapes.at("y"), (Shape{3}));
  EXPECT_EQ(shapes.at("picked"), (Shape{2}));
}

TEST(ModelCheckTest, ShapesOfWindowsSumsAndReshapes) {
  RandomModel model(1);
  model.Input("x", {4, 11, 9});
  model.Conv("c", "x", {6, 2, 3, 2},
             {.strides = {2, 3}, .pads = {1, 0, 2, 1}, .dilations = {2, 1}, .groups = 2});
  EXPECT_EQ(model.shape("c"), (Shape{6, 5, 3}));
  model.Pool("p", "x", {3, 2}, {.strides = {3, 2}, .pads = {2, 0, 0, 1}});
  EXPECT_EQ(model.shape("p"), (Shape{4, 4, 5}));
  model.Add({.name = "all", .kind = ModelKind::kSum, .a = "x"});
  EXPECT_EQ(model.shape("all"), (Shape{}));
  model.Add(
      {.name = "rows", .kind = ModelKind::kSum, .a = "x", .axes = {-1, 0}, .keep_axes = true});
  EXPECT_EQ(model.shape("rows"), (Shape{1, 11, 1}));
  model.Add({.name = "columns", .kind = ModelKind::kSum, .a = "x", .axes = {1}});
  EXPECT_EQ(model.shape("columns"), (Shape{4, 9}));
  model.Add({.name = "r", .kind = ModelKind::kReshape, .a = "x", .shape = {2, -1, 9}});
  EXPECT_EQ(model.shape("r"), (Shape{2, 22, 9}));
}

TEST(ModelCheckTest, MessagesSayWhereAndWhatMendsIt) {
  const std::string transposed = RefusalAfter([](Model& model) {
    model.constants["y.w"] = TensorOf({32, 3}, std::vector<double>(96, 1.0));
  });
  EXPECT_EQ(transposed,
            "model 'random', operation 'y': linear: weight 'y.w' has shape [32, 3], but 's' of "
            "shape [2, 4, 4] has 32 numbers, so [out, 32] is expected; it looks transposed");
}

TEST(ModelCheckTest, RefusesOperandsAndConstantsThatDoNotFit) {
  using Kind = ModelKind;
  const auto refused = [](ModelOperation operation, const char* what) {
    EXPECT_THAT(RefusalOf(std::move(operation)), HasSubstr(what));
  };
  refused({.kind = Kind::kSquare, .a = "later"}, "operand 'later': no input and no operation");
  refused({.kind = Kind::kSquare, .a = "new"}, "operand 'new': no input and no operation");
  refused({.kind = Kind::kAdd, .a = "x", .b = "c"}, "expected operands of one shape");
  refused({.kind = Kind::kLinear, .a = "x"}, "weight: expected the name of a constant");
  refused({.kind = Kind::kLinear, .a = "x", .weight = "gone"}, "weight 'gone': no constant");
  refused({.kind = Kind::kLinear, .a = "x", .weight = "i"},
          "expected float64 or float32, got int64");
  refused({.kind = Kind::kLinear, .a = "picked", .weight = "weight", .bias = "two"},
          "bias 'two': expected shape [4]");
  refused({.kind = Kind::kConv2d, .a = "z", .weight = "c.w"}, "expected an image of shape");
  refused({.kind = Kind::kConv2d, .a = "c", .weight = "c.w"}, "expects [out, 2, height, width]");
  refused({.kind = Kind::kConv2d, .a = "x", .weight = "c.w", .groups = 2},
          "groups: expected a divisor of the 1 channels");
  refused({.kind = Kind::kConv2d, .a = "x", .weight = "c.w", .strides = {0, 1}},
          "strides: expected 1 to 65536, got 0");
  refused({.kind = Kind::kConv2d, .a = "x", .weight = "c.w", .pads = {0, -1, 0, 0}},
          "pads: expected 0 to 65536, got -1");
  refused({.kind = Kind::kConv2d, .a = "x", .weight = "c.w", .dilations = {3, 1}},
          "the kernel reaches over 7 rows");
  refused({.kind = Kind::kAveragePool2d, .a = "x", .pads = {0, 0, 2, 0}, .kernel = {2, 2}},
          "pads: expected less than the kernel's 2, got 2");
  refused({.kind = Kind::kAddConstant, .a = "z", .constant = "two"}, "does not broadcast");
  refused({.kind = Kind::kAddConstant, .a = "z", .constant = "nan"},
          "constant 'nan': expected finite numbers, got nan at 0");
  refused({.kind = Kind::kPolynomial, .a = "x"}, "coefficients: expected at least one");
  refused({.kind = Kind::kPolynomial, .a = "x", .polynomial = {{}, {1, INFINITY}, -1, 1}},
          "coefficients: expected finite numbers");
  refused({.kind = Kind::kPolynomial,
           .a = "x",
           .polynomial = {{}, std::vector<double>(129, 0.5), -1, 1}},
          "coefficients: expected at most 128, got 129");
  refused({.kind = Kind::kPolynomial, .a = "x", .polynomial = {{}, {1, 2}, 1, 1}},
          "lower, upper: expected a range");
  refused({.kind = Kind::kSum, .a = "x", .axes = {3}}, "axes: expected distinct axes");
  refused({.kind = Kind::kSum, .a = "x", .axes = {0, -3}}, "axes: expected distinct axes");
  refused({.kind = Kind::kReshape, .a = "x", .shape = {5, -1}}, "does not hold the 36 numbers");
  refused({.kind = Kind::kReshape, .a = "x", .shape = {-1, -1}}, "does not hold the 36 numbers");
  refused({.kind = Kind::kReshape, .a = "x", .shape = {0}}, "does not hold the 36 numbers");
  refused({.kind = Kind::kSelect, .a = "picked", .indices = "i"}, "expected 0 to 1");
  refused({.kind = Kind::kSelect, .a = "x", .indices = "two"}, "expected int64 or int32");
}

TEST(ModelCheckTest, RefusesModelsThatAreNotWhole) {
  const auto refused = [](void (*change)(Model&), const char* what) {
    EXPECT_THAT(RefusalAfter(change), HasSubstr(what));
  };
  refused([](Model& m) { m.name = "Upper"; }, "name: expected 1 to 64");
  refused([](Model& m) { m.version = 0; }, "version: expected at least 1");
  refused([](Model& m) { m.inputs.clear(); }, "inputs: expected at least one");
  refused([](Model& m) { m.operations.clear(); }, "operations: expected at least one");
  refused([](Model& m) { m.outputs.clear(); }, "outputs: expected at least one");
  refused([](Model& m) { m.operations[0].name = "a b"; }, "name: expected 1 to 64");
  refused([](Model& m) { m.operations[0].name = m.inputs[0].name; }, "another input or operation has it");
  refused([](Model& m) { m.inputs[0].shape = {256, 257}; }, "expected 1 to 65536 numbers");
  refused([](Model& m) { m.inputs[0].shape = {0}; }, "expected 1 to 65536 numbers");
  refused([](Model& m) { m.inputs[0].lower = 2; }, "lower, upper: expected bounds");
  refused([](Model& m) { m.inputs[0].upper = INFINITY; }, "lower, upper: expected bounds");
  refused([](Model& m) { m.outputs[1].name = m.outputs[0].name; }, "another output has it");
  refused([](Model& m) { m.outputs[1].edge = m.inputs[0].name; }, "expected the name of an operation");
  refused([](Model& m) { m.outputs.pop_back(); }, "edge 'picked': nothing reads it");
}

}  // namespace
}  // namespace cipherd::planning
