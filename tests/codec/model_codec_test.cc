#include "proto/codec/model_codec.h"

#include <google/protobuf/text_format.h>
#include <google/protobuf/util/json_util.h>

#include <cstring>
#include <string>
#include <vector>

#include "core/planning/constant_numbers.h"
#include "core/planning/model_check.h"
#include "gtest/gtest.h"
#include "tests/codec/wire_values.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::codec {
namespace {

using ::cipherd::testing::IsRefusal;
using ::cipherd::testing::StatusIs;
using planning::Model;
using planning::ModelKind;
using planning::ModelOperation;
using planning::Polynomial;
using planning::PolynomialBasis;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kMalformed = v1::ERROR_REASON_MALFORMED_VALUE;
constexpr auto kLimit = v1::ERROR_REASON_LIMIT_EXCEEDED;

// One operation of each kind, with every field that the kind has.
Model EveryKind() {
  Model model;
  model.name = "every_kind";
  model.version = 7;
  model.description = "A line.\nAnother \"quoted\" one.";
  model.constants_file = "constants.safetensors";
  model.inputs = {{"x", {1, 28, 28}, 0, 255.5, "pixels"}, {"y", {}, -3, 2, ""}};
  model.outputs = {{"logits", "o14", "scores"}, {"other", "o1", ""}};
  model.operations = {
      {.name = "o1", .kind = ModelKind::kLinear, .a = "x", .weight = "w", .bias = "b"},
      {.name = "o2",
       .kind = ModelKind::kConv2d,
       .a = "x",
       .weight = "w",
       .bias = "b",
       .strides = {2, 3},
       .pads = {1, 2, 3, 4},
       .dilations = {5, 6},
       .groups = 7},
      {.name = "o3",
       .kind = ModelKind::kAveragePool2d,
       .a = "x",
       .strides = {4, 5},
       .pads = {0, 1, 0, 2},
       .kernel = {2, 3},
       .count_include_pad = true},
      {.name = "o4", .kind = ModelKind::kAdd, .a = "x", .b = "y"},
      {.name = "o5", .kind = ModelKind::kSubtract, .a = "x", .b = "y"},
      {.name = "o6", .kind = ModelKind::kNegate, .a = "x"},
      {.name = "o7", .kind = ModelKind::kMultiply, .a = "x", .b = "y"},
      {.name = "o8", .kind = ModelKind::kSquare, .a = "x"},
      {.name = "o9", .kind = ModelKind::kAddConstant, .a = "x", .constant = "c"},
      {.name = "o10", .kind = ModelKind::kMultiplyConstant, .a = "x", .constant = "c"},
      {.name = "o11",
       .kind = ModelKind::kPolynomial,
       .a = "x",
       .polynomial = {PolynomialBasis::kChebyshev, {0.1, 0, -2.5e-9}, -8, 4.25}},
      {.name = "o12", .kind = ModelKind::kSum, .a = "x", .axes = {-1, 0}, .keep_axes = true},
      {.name = "o13", .kind = ModelKind::kReshape, .a = "x", .shape = {4, -1}},
      {.name = "o14", .kind = ModelKind::kSelect, .a = "x", .indices = "i"},
      {.name = "o15", .kind = ModelKind::kConv2d, .a = "x", .weight = "w"},
      {.name = "o16",
       .kind = ModelKind::kPolynomial,
       .a = "x",
       .polynomial = {PolynomialBasis::kPower, {1}, -1, 1}},
  };
  return model;
}

void ExpectSame(const Model& actual, const Model& expected) {
  EXPECT_EQ(actual.name, expected.name);
  EXPECT_EQ(actual.version, expected.version);
  EXPECT_EQ(actual.description, expected.description);
  EXPECT_EQ(actual.constants_file, expected.constants_file);
  ASSERT_EQ(actual.inputs.size(), expected.inputs.size());
  for (size_t i = 0; i < expected.inputs.size(); ++i) {
    EXPECT_EQ(actual.inputs[i].name, expected.inputs[i].name);
    EXPECT_EQ(actual.inputs[i].shape, expected.inputs[i].shape);
    EXPECT_EQ(actual.inputs[i].lower, expected.inputs[i].lower);
    EXPECT_EQ(actual.inputs[i].upper, expected.inputs[i].upper);
    EXPECT_EQ(actual.inputs[i].description, expected.inputs[i].description);
  }
  ASSERT_EQ(actual.outputs.size(), expected.outputs.size());
  for (size_t i = 0; i < expected.outputs.size(); ++i) {
    EXPECT_EQ(actual.outputs[i].name, expected.outputs[i].name);
    EXPECT_EQ(actual.outputs[i].edge, expected.outputs[i].edge);
    EXPECT_EQ(actual.outputs[i].description, expected.outputs[i].description);
  }
  ASSERT_EQ(actual.operations.size(), expected.operations.size());
  for (size_t i = 0; i < expected.operations.size(); ++i) {
    const ModelOperation& a = actual.operations[i];
    const ModelOperation& b = expected.operations[i];
    SCOPED_TRACE(b.name);
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.kind, b.kind);
    EXPECT_EQ(a.a, b.a);
    EXPECT_EQ(a.b, b.b);
    EXPECT_EQ(a.weight, b.weight);
    EXPECT_EQ(a.bias, b.bias);
    EXPECT_EQ(a.constant, b.constant);
    EXPECT_EQ(a.indices, b.indices);
    EXPECT_EQ(a.strides, b.strides);
    EXPECT_EQ(a.pads, b.pads);
    EXPECT_EQ(a.dilations, b.dilations);
    EXPECT_EQ(a.groups, b.groups);
    EXPECT_EQ(a.kernel, b.kernel);
    EXPECT_EQ(a.count_include_pad, b.count_include_pad);
    EXPECT_EQ(a.polynomial.basis, b.polynomial.basis);
    EXPECT_EQ(a.polynomial.coefficients, b.polynomial.coefficients);
    EXPECT_EQ(a.polynomial.lower, b.polynomial.lower);
    EXPECT_EQ(a.polynomial.upper, b.polynomial.upper);
    EXPECT_EQ(a.axes, b.axes);
    EXPECT_EQ(a.keep_axes, b.keep_axes);
    EXPECT_EQ(a.shape, b.shape);
  }
  ASSERT_EQ(actual.constants.size(), expected.constants.size());
  for (const auto& [name, tensor] : expected.constants) {
    SCOPED_TRACE(name);
    ASSERT_TRUE(actual.constants.contains(name));
    const value::Tensor& other = actual.constants.at(name);
    EXPECT_EQ(other.dtype(), tensor.dtype());
    EXPECT_EQ(other.shape(), tensor.shape());
    EXPECT_EQ(std::memcmp(other.data(), tensor.data(), tensor.bytes()), 0);
  }
}

TEST(ModelCodecTest, EveryKindOfOperationGoesThroughTextAndBack) {
  const Model model = EveryKind();
  ASSERT_OK_AND_ASSIGN(const v1::Model message, EncodeModel(model));
  std::string text;
  ASSERT_TRUE(google::protobuf::TextFormat::PrintToString(message, &text));
  ASSERT_OK_AND_ASSIGN(const Model back, ParseModelText(text, "model.textproto"));
  ExpectSame(back, model);
}

TEST(ModelCodecTest, EveryKindOfOperationGoesThroughJsonAndBack) {
  const Model model = EveryKind();
  ASSERT_OK_AND_ASSIGN(const v1::Model message, EncodeModel(model));
  for (bool keeps_names : {false, true}) {
    google::protobuf::util::JsonPrintOptions options;
    options.preserve_proto_field_names = keeps_names;
    std::string json;
    ASSERT_TRUE(google::protobuf::util::MessageToJsonString(message, &json, options).ok());
    ASSERT_OK_AND_ASSIGN(const Model back, ModelFromJson(json, "model"));
    ExpectSame(back, model);
  }
}

// As a person writes it, or a script: numbers are numbers, and constants stand with the rest.
constexpr char kIris[] = R"({
  "name": "iris",
  "inputs": [{"name": "x", "shape": [4], "lower": -3, "upper": 3}],
  "operations": [
    {"name": "z", "linear": {"a": "x", "weight": "w", "bias": "b"}},
    {"name": "first", "select": {"a": "z", "indices": "i"}},
    {"name": "p", "polynomial": {"a": "first", "basis": "BASIS_CHEBYSHEV",
                                 "coefficients": [0.5, 0.6, 0, -0.1], "lower": -8, "upper": 8}}],
  "outputs": [{"name": "probability", "edge": "p"}],
  "constants": [
    {"name": "w", "shape": [2, 4], "values": [1, 2, 3, 4, 5, 6, 7, 8.5]},
    {"name": "b", "values": [-1, 1]},
    {"name": "i", "integers": [1]}]
})";

TEST(ModelCodecTest, JsonByHandIsACompleteModel) {
  ASSERT_OK_AND_ASSIGN(const Model model, ModelFromJson(kIris, "iris.json"));
  EXPECT_EQ(model.version, 1);
  EXPECT_OK(planning::CheckModel(model));
  EXPECT_EQ(model.constants.at("w").shape(), (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(planning::NumbersOf(model.constants.at("b")), (std::vector<double>{-1, 1}));
  EXPECT_EQ(planning::IntegersOf(model.constants.at("i")), (std::vector<int64_t>{1}));
  // Constants that no file holds are written too.
  ASSERT_OK_AND_ASSIGN(const v1::Model message, EncodeModel(model));
  ASSERT_OK_AND_ASSIGN(const Model back, DecodeModel(message, "iris"));
  ExpectSame(back, model);
}

TEST(ModelCodecTest, AbsentNumbersHaveTheirDefaults) {
  ASSERT_OK_AND_ASSIGN(const Model model, ParseModelText(R"(
    inputs { name: "x" shape: [1, 4, 4] }
    operations { name: "c" conv2d { a: "x" weight: "w" } }
    operations { name: "p" polynomial { a: "c" coefficients: [1, 2] } }
    outputs { name: "y" edge: "p" })",
                                                         "m"));
  EXPECT_EQ(model.version, 1);
  EXPECT_EQ(model.inputs[0].lower, -1);
  EXPECT_EQ(model.inputs[0].upper, 1);
  EXPECT_EQ(model.operations[0].strides, (std::array<int64_t, 2>{1, 1}));
  EXPECT_EQ(model.operations[0].pads, (std::array<int64_t, 4>{0, 0, 0, 0}));
  EXPECT_EQ(model.operations[0].dilations, (std::array<int64_t, 2>{1, 1}));
  EXPECT_EQ(model.operations[0].groups, 1);
  EXPECT_EQ(model.operations[1].polynomial.basis, PolynomialBasis::kPower);
  EXPECT_EQ(model.operations[1].polynomial.lower, -1);
  EXPECT_EQ(model.operations[1].polynomial.upper, 1);
}

TEST(ModelCodecTest, SyntaxErrorsNameTheModel) {
  const absl::Status text =
      ParseModelText("name: \"m\"\n  colour: 3\n", "dir/m.textproto").status();
  EXPECT_THAT(text, StatusIs(kInvalid, HasSubstr("colour")));
  EXPECT_THAT(std::string(text.message()), ::testing::StartsWith("dir/m.textproto:2:"));
  for (const char* json : {"{\"colour\": 3}", "{", "[]", "{\"version\": -1}", "{\"name\": 3"}) {
    EXPECT_THAT(ModelFromJson(json, "m.json"), IsRefusal(kInvalid, kMalformed, "m.json")) << json;
  }
}

TEST(ModelCodecTest, WhatDoesNotFitIsNamed) {
  const auto refuses = [](const std::string& text, v1::ErrorReason reason, const char* path) {
    EXPECT_THAT(ParseModelText(text, "m"), IsRefusal(kInvalid, reason, path)) << text;
  };
  refuses("operations { name: \"z\" }", kMalformed, "m.operations[0]");
  refuses("operations { conv2d { strides: 1 } }", kMalformed, "m.operations[0].conv2d.strides");
  refuses("operations { conv2d { pads: [1, 1] } }", kMalformed, "m.operations[0].conv2d.pads");
  refuses("operations { conv2d { dilations: [1, 1, 1] } }", kMalformed,
          "m.operations[0].conv2d.dilations");
  refuses("operations { average_pool2d { a: \"x\" } }", kMalformed,
          "m.operations[0].average_pool2d.kernel");
  refuses("inputs { shape: [1, 1, 1, 1, 1, 1, 1, 1, 1] }", kLimit, "m.inputs[0].shape");
  refuses("constants { shape: [1, 1, 1, 1, 1, 1, 1, 1, 1] values: 1 }", kLimit,
          "m.constants[0].shape");
  refuses("constants { shape: [2, 2] values: [1, 2, 3] }", kMalformed, "m.constants[0]");
  refuses("constants { shape: [4294967296, 4294967296] values: 1 }", kMalformed, "m.constants[0]");
  refuses("constants { shape: -1 values: 1 }", kMalformed, "m.constants[0]");
  refuses("constants { name: \"c\" }", kMalformed, "m.constants[0]");
  refuses("constants { values: 1 integers: 1 }", kMalformed, "m.constants[0]");
  refuses("constants { name: \"c\" values: 1 } constants { name: \"c\" values: 2 }", kMalformed,
          "m.constants[1].name");
  v1::Model message;
  message.add_operations()->mutable_polynomial()->set_basis(
      static_cast<v1::ModelOperation::Basis>(9));
  EXPECT_THAT(DecodeModel(message, "m"),
              IsRefusal(kInvalid, kMalformed, "m.operations[0].polynomial.basis"));
}

TEST(ModelCodecTest, NumbersThatTheWireCannotHoldAreRefused) {
  Model model = EveryKind();
  model.version = int64_t{1} << 32;
  EXPECT_THAT(EncodeModel(model), IsRefusal(kInvalid, kMalformed, "model.version"));
  model = EveryKind();
  model.inputs[1].lower = model.inputs[1].upper = 0;
  EXPECT_THAT(EncodeModel(model), IsRefusal(kInvalid, kMalformed, "model.inputs[1].upper"));
}

TEST(ModelCodecTest, ConstantsOfAFileAreAddedOnce) {
  ASSERT_OK_AND_ASSIGN(Model model, ModelFromJson(kIris, "iris.json"));
  const value::Tensor tensor = model.constants.at("b");
  EXPECT_OK(AddConstants({{"new", tensor}}, model));
  EXPECT_EQ(model.constants.count("new"), 1u);
  EXPECT_THAT(AddConstants({{"w", tensor}}, model), StatusIs(kInvalid, HasSubstr("'w'")));
  EXPECT_EQ(model.constants.at("w").shape(), (std::vector<int64_t>{2, 4}));
}

}  // namespace
}  // namespace cipherd::codec
