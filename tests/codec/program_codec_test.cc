#include "proto/codec/program_codec.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/codec/wire_values.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::codec {
namespace {

using ::cipherd::testing::IsRefusal;
using ::cipherd::testing::SmallContext;
using ::cipherd::testing::StatusIs;
using programs::Operation;
using programs::OperationKind;
using programs::ProgramSpec;
using ::testing::HasSubstr;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
constexpr auto kMalformed = v1::ERROR_REASON_MALFORMED_VALUE;

// One operation of each kind, with every field that the kind has.
ProgramSpec EveryKind() {
  ProgramSpec spec;
  spec.name = "every_kind";
  spec.version = 7;
  spec.description = "A line.\nAnother \"quoted\" one.";
  spec.context = SmallContext()->parameters();
  spec.constants_file = "constants.safetensors";
  spec.inputs = {{"x", 1, 1048576.25, {8, 1, 784, 8}, "pixels"}, {"y", 0, 0, {}, ""}};
  spec.outputs = {{"logits", "o14", {8, 1, 10, 8}, "scores", 12.5, {0.5, 0.25, 1280}}};
  const programs::SlotExpansion expansion = {8, true};
  spec.operations = {
      {.name = "o1", .kind = OperationKind::kAdd, .a = "x", .b = "y"},
      {.name = "o2", .kind = OperationKind::kSubtract, .a = "x", .b = "y"},
      {.name = "o3", .kind = OperationKind::kNegate, .a = "o1"},
      {.name = "o4", .kind = OperationKind::kAddPlain, .a = "o1", .constant = "bias"},
      {.name = "o5",
       .kind = OperationKind::kSubtractPlain,
       .a = "o1",
       .constant = "bias",
       .expansion = expansion},
      {.name = "o6", .kind = OperationKind::kMultiply, .a = "x", .b = "y"},
      {.name = "o7", .kind = OperationKind::kSquare, .a = "x"},
      {.name = "o8",
       .kind = OperationKind::kMultiplyPlain,
       .a = "x",
       .constant = "mask",
       .expansion = {4, false},
       .scale = 33554432.5,
       .result_scale = 33554433.25},
      {.name = "o9", .kind = OperationKind::kRelinearize, .a = "o6"},
      {.name = "o10", .kind = OperationKind::kRescale, .a = "o9", .result_scale = 1025.5},
      {.name = "o11", .kind = OperationKind::kDropToDepth, .a = "x", .depth = 2},
      {.name = "o12", .kind = OperationKind::kRotate, .a = "x", .step = -3},
      {.name = "o13", .kind = OperationKind::kConjugate, .a = "x"},
      {.name = "o14",
       .kind = OperationKind::kLinearTransform,
       .a = "x",
       .constant = "w",
       .expansion = expansion,
       .offsets = "w_offsets",
       .baby_span = 16,
       .scale = 2048,
       .result_scale = 4096.25},
  };
  return spec;
}

void ExpectSame(const ProgramSpec& actual, const ProgramSpec& expected) {
  EXPECT_EQ(actual.name, expected.name);
  EXPECT_EQ(actual.version, expected.version);
  EXPECT_EQ(actual.description, expected.description);
  EXPECT_EQ(actual.context, expected.context);
  EXPECT_EQ(actual.constants_file, expected.constants_file);
  ASSERT_EQ(actual.inputs.size(), expected.inputs.size());
  for (size_t i = 0; i < expected.inputs.size(); ++i) {
    EXPECT_EQ(actual.inputs[i].name, expected.inputs[i].name);
    EXPECT_EQ(actual.inputs[i].depth, expected.inputs[i].depth);
    EXPECT_EQ(actual.inputs[i].scale, expected.inputs[i].scale);
    EXPECT_EQ(actual.inputs[i].layout, expected.inputs[i].layout);
    EXPECT_EQ(actual.inputs[i].description, expected.inputs[i].description);
  }
  ASSERT_EQ(actual.outputs.size(), expected.outputs.size());
  for (size_t i = 0; i < expected.outputs.size(); ++i) {
    EXPECT_EQ(actual.outputs[i].name, expected.outputs[i].name);
    EXPECT_EQ(actual.outputs[i].edge, expected.outputs[i].edge);
    EXPECT_EQ(actual.outputs[i].layout, expected.outputs[i].layout);
    EXPECT_EQ(actual.outputs[i].description, expected.outputs[i].description);
    EXPECT_EQ(actual.outputs[i].magnitude_bound, expected.outputs[i].magnitude_bound);
    EXPECT_EQ(actual.outputs[i].errors, expected.outputs[i].errors);
  }
  ASSERT_EQ(actual.operations.size(), expected.operations.size());
  for (size_t i = 0; i < expected.operations.size(); ++i) {
    const Operation& a = actual.operations[i];
    const Operation& b = expected.operations[i];
    SCOPED_TRACE(b.name);
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.kind, b.kind);
    EXPECT_EQ(a.a, b.a);
    EXPECT_EQ(a.b, b.b);
    EXPECT_EQ(a.constant, b.constant);
    EXPECT_EQ(a.expansion, b.expansion);
    EXPECT_EQ(a.offsets, b.offsets);
    EXPECT_EQ(a.baby_span, b.baby_span);
    EXPECT_EQ(a.scale, b.scale);
    EXPECT_EQ(a.result_scale, b.result_scale);
    EXPECT_EQ(a.step, b.step);
    EXPECT_EQ(a.depth, b.depth);
  }
}

TEST(ProgramCodecTest, EveryKindOfOperationGoesThroughTextAndBack) {
  const ProgramSpec spec = EveryKind();
  ASSERT_OK_AND_ASSIGN(const std::string text, PrintProgramText(spec));
  ASSERT_OK_AND_ASSIGN(const ProgramSpec back, ParseProgramText(text, "program.textproto"));
  ExpectSame(back, spec);
}

constexpr char kSmallProgram[] = R"(
name: "small"
version: 1
context {
  log_n: 4
  q_primes: [97, 193]
  p_primes: 257
  rescale_groups: 1
  digits { prime_ids: [0, 1] }
  galois_generator: 5
  default_scale: 1024
  secret_distribution: SECRET_DISTRIBUTION_UNIFORM_TERNARY
}
inputs { name: "x" }
operations { name: "y" square { a: "x" } }
outputs { name: "out" edge: "y" }
)";

TEST(ProgramCodecTest, AbsentNumbersHaveTheirDefaults) {
  ASSERT_OK_AND_ASSIGN(const ProgramSpec spec, ParseProgramText(kSmallProgram, "p"));
  EXPECT_EQ(spec.inputs[0].layout, programs::SlotLayout());
  EXPECT_EQ(spec.operations[0].expansion, programs::SlotExpansion());
  EXPECT_EQ(spec.context.q_primes, (std::vector<uint64_t>{97, 193}));
}

TEST(ProgramCodecTest, SyntaxErrorsNameFileLineAndColumn) {
  const auto refuses = [](const std::string& line, const std::string& what) {
    const std::string text = "name: \"p\"\n  " + line + "\n";
    const absl::Status status = ParseProgramText(text, "dir/program.textproto").status();
    EXPECT_THAT(status, StatusIs(kInvalid, HasSubstr(what)));
    EXPECT_THAT(std::string(status.message()), ::testing::StartsWith("dir/program.textproto:2:"));
    EXPECT_EQ(GetErrorDetail(status)->reason(), kMalformed);
  };
  refuses("colour: 3", "colour");
  refuses("version: -1", "Expected integer");
  refuses("version: 4294967296", "out of range");
  refuses("version: \"one\"", "Expected integer");
  refuses("inputs { depth: 1 depth: 2 }", "depth");
  refuses("operations { add { a: \"x\" } square { a: \"x\" } }", "oneof");
  refuses("inputs { ]", "");
  refuses("[cipherd.v1.extension]: 3", "");
}

TEST(ProgramCodecTest, WhatTheTextLacksIsNamed) {
  std::string text = kSmallProgram;
  EXPECT_THAT(ParseProgramText(text + "operations { name: \"z\" }", "p"),
              IsRefusal(kInvalid, kMalformed, "p.operations[1]"));
  EXPECT_THAT(ParseProgramText(text + "outputs { name: \"z\" }", "p"),
              IsRefusal(kInvalid, kMalformed, "p.outputs[1].edge"));
  EXPECT_THAT(ParseProgramText(text + "inputs { depth: 4294967295 }", "p"),
              IsRefusal(kInvalid, kMalformed, "p.inputs[1].depth"));
  EXPECT_THAT(
      ParseProgramText(
          text + "operations { name: \"z\" drop_to_depth { a: \"x\" depth: 2147483648 } }", "p"),
      IsRefusal(kInvalid, kMalformed, "p.operations[1].drop_to_depth.depth"));
  EXPECT_THAT(ParseProgramText("name: \"p\"", "p"), IsRefusal(kInvalid, kMalformed, "p.context"));
}

TEST(ProgramCodecTest, NumbersThatTheWireCannotHoldAreRefusedNotTruncated) {
  struct Case {
    const char* path;
    void (*change)(ProgramSpec&);
  };
  const Case cases[] = {
      {"program.version", [](ProgramSpec& s) { s.version = int64_t{1} << 32; }},
      {"program.inputs[0].depth", [](ProgramSpec& s) { s.inputs[0].depth = -1; }},
      {"program.inputs[1].layout.item_count",
       [](ProgramSpec& s) { s.inputs[1].layout.item_count = 0; }},
      {"program.outputs[0].layout.element_stride",
       [](ProgramSpec& s) { s.outputs[0].layout.element_stride = int64_t{1} << 32; }},
      {"program.operations[13].linear_transform.baby_span",
       [](ProgramSpec& s) { s.operations[13].baby_span = -1; }},
      {"program.operations[4].expansion.repeat",
       [](ProgramSpec& s) { s.operations[4].expansion.repeat = 0; }},
      {"program.operations[10].drop_to_depth.depth",
       [](ProgramSpec& s) { s.operations[10].depth = -1; }},
  };
  for (const Case& c : cases) {
    ProgramSpec spec = EveryKind();
    c.change(spec);
    EXPECT_THAT(EncodeProgram(spec), IsRefusal(kInvalid, kMalformed, c.path));
  }
}

TEST(ProgramCodecTest, KeyIdsComeBackAndOthersAreRefused) {
  for (const ckks::KeyId& id :
       {ckks::KeyId::Relinearization(), ckks::KeyId::Rotation(3, 8), ckks::KeyId::Conjugation()}) {
    v1::KeyId message;
    EncodeKeyId(id, &message);
    ASSERT_OK_AND_ASSIGN(const ckks::KeyId back, DecodeKeyId(message, "key"));
    EXPECT_EQ(back, id);
  }
  const auto refuses = [](v1::ValueType type, int64_t step, const char* path) {
    v1::KeyId message;
    message.set_type(type);
    message.set_rotation_step(step);
    EXPECT_THAT(DecodeKeyId(message, "key"), IsRefusal(kInvalid, kMalformed, path));
  };
  refuses(v1::VALUE_TYPE_UNSPECIFIED, 0, "key.type");
  refuses(v1::VALUE_TYPE_SECRET_KEY, 0, "key.type");
  refuses(v1::VALUE_TYPE_CIPHERTEXT, 0, "key.type");
  refuses(static_cast<v1::ValueType>(-4), 0, "key.type");
  refuses(v1::VALUE_TYPE_ROTATION_KEY, 0, "key.rotation_step");
  refuses(v1::VALUE_TYPE_ROTATION_KEY, -3, "key.rotation_step");
  refuses(v1::VALUE_TYPE_CONJUGATION_KEY, 1, "key.rotation_step");
}

}  // namespace
}  // namespace cipherd::codec
