#include "core/programs/program_checker.h"

#include <cmath>
#include <limits>
#include <ostream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/programs/spec_builder.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::programs {
namespace {

using ::cipherd::testing::StatusIs;
using ckks::KeyId;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = OperationKind;

absl::StatusOr<std::shared_ptr<const CheckedProgram>> Check(const SpecBuilder& builder) {
  return CheckProgram(builder.Build(), builder.constants(), ckks::SecurityPolicy::kAllowInsecure);
}

// y = x · x, relinearized and rescaled: a program that is right, for tests to spoil.
SpecBuilder Square() {
  SpecBuilder builder(SmallContext());
  builder.Input("x")
      .Add({.name = "x2", .kind = Kind::kSquare, .a = "x"})
      .Add({.name = "short", .kind = Kind::kRelinearize, .a = "x2"})
      .Add({.name = "y", .kind = Kind::kRescale, .a = "short"})
      .Output("y");
  return builder;
}

TEST(ProgramChecker, InfersDepthScaleAndComponentsOfEveryEdge) {
  const SpecBuilder builder = Square();
  ASSERT_OK_AND_ASSIGN(const auto program, Check(builder));
  const double q0 = static_cast<double>(program->spec.context.q_primes[0]);
  const double scale = std::ldexp(1.0, 40);
  EXPECT_EQ(program->edges.at("x"), (EdgeState{0, scale, 2}));
  EXPECT_EQ(program->edges.at("x2"), (EdgeState{0, scale * scale, 3}));
  EXPECT_EQ(program->edges.at("short"), (EdgeState{0, scale * scale, 2}));
  EXPECT_EQ(program->edges.at("y"), (EdgeState{1, scale * scale / q0, 2}));
  EXPECT_THAT(program->keys.ids(), ElementsAre(KeyId::Relinearization()));
}

TEST(ProgramChecker, BytesFollowFromStates) {
  ASSERT_OK_AND_ASSIGN(const auto program, Check(Square()));
  EXPECT_EQ(program->input_bytes(), 2 * 4 * 256 * 8);
  EXPECT_EQ(program->output_bytes(), 2 * 3 * 256 * 8);
  EXPECT_EQ(program->key_bytes(), 1 * 2 * 2 * (4 + 2) * 256 * 8);
  EXPECT_EQ(program->constant_bytes(), 0);
  EXPECT_EQ(program->largest_constant_bytes(), 0);
}

TEST(ProgramChecker, BytesOfConstantsFollowFromWhatOperationsReadThemAs) {
  SpecBuilder builder(SmallContext());
  builder.Input("x")
      .Constant("d", HostTensor(value::DType::kFloat64, {5, 128}, std::vector<double>(5 * 128, 1)))
      .Constant("offsets", Offsets({0, 1, 2, 3, 4}))
      .Constant("c", Slots({0.5, -3}))
      .Add({.name = "t",
            .kind = Kind::kLinearTransform,
            .a = "x",
            .constant = "d",
            .offsets = "offsets",
            .baby_span = 8})
      .Add({.name = "y", .kind = Kind::kRescale, .a = "t"})
      .Add({.name = "z", .kind = Kind::kAddPlain, .a = "y", .constant = "c"})
      .Output("z");
  ASSERT_OK_AND_ASSIGN(const auto program, Check(builder));
  ASSERT_TRUE(program->plans.at("t").hoists_twice());
  const int64_t diagonals = 5 * (4 + 2) * 256 * 8;
  EXPECT_EQ(program->largest_constant_bytes(), diagonals);
  EXPECT_EQ(program->constant_bytes(), diagonals + 3 * 256 * 8);
}

TEST(ProgramChecker, AConstantAtTheDroppedPrimesKeepsAScaleThatIsAPowerOfTwo) {
  SpecBuilder builder(SmallContext());
  builder.Input("x")
      .Constant("c", Slots({0.5, -3}))
      .Add({.name = "cx", .kind = Kind::kMultiplyPlain, .a = "x", .constant = "c"})
      .Add({.name = "y", .kind = Kind::kRescale, .a = "cx"})
      .Output("y");
  ASSERT_OK_AND_ASSIGN(const auto program, Check(builder));
  const double q0 = static_cast<double>(program->spec.context.q_primes[0]);
  EXPECT_EQ(program->constant_scales.at("cx"), q0);
  EXPECT_EQ(program->edges.at("y").scale, std::ldexp(1.0, 40));
}

TEST(ProgramChecker, AStatedScaleIsTakenAsItIs) {
  SpecBuilder builder(SmallContext());
  builder.Input("x", /*depth=*/3, /*scale=*/1024)
      .Constant("c", Slots({1}))
      .Add({.name = "y", .kind = Kind::kMultiplyPlain, .a = "x", .constant = "c", .scale = 2048})
      .Output("y");
  ASSERT_OK_AND_ASSIGN(const auto program, Check(builder));
  EXPECT_EQ(program->edges.at("y"), (EdgeState{3, 1024.0 * 2048, 2}));
}

TEST(ProgramChecker, AResultHasTheScaleThatIsStatedWhereOnlyRoundingDiffers) {
  const double scale = std::ldexp(1.0, 40);
  // No binary64 times this input's scale is that, and no product over the prime is `scale`.
  const double odd = scale * (1 + 0x1p-20 + 0x1p-52);
  SpecBuilder builder(SmallContext());
  const double q0 = static_cast<double>(builder.spec().context.q_primes[0]);
  builder.Input("x", 0, odd)
      .Constant("c", Slots({1}))
      .Add({.name = "cx",
            .kind = Kind::kMultiplyPlain,
            .a = "x",
            .constant = "c",
            .result_scale = scale * q0})
      .Add({.name = "y", .kind = Kind::kRescale, .a = "cx", .result_scale = scale})
      .Output("y");
  ASSERT_OK_AND_ASSIGN(const auto program, Check(builder));
  EXPECT_EQ(program->constant_scales.at("cx"), scale * q0 / odd);
  EXPECT_EQ(program->edges.at("cx").scale, scale * q0);
  EXPECT_EQ(program->edges.at("y").scale, scale);
}

TEST(ProgramChecker, ASumHasTheComponentsOfItsLongerOperand) {
  SpecBuilder builder(SmallContext());
  builder.Input("x")
      .Input("w", 0, std::ldexp(1.0, 80))
      .Add({.name = "x2", .kind = Kind::kSquare, .a = "x"})
      .Add({.name = "sum", .kind = Kind::kSubtract, .a = "w", .b = "x2"})
      .Add({.name = "y", .kind = Kind::kRelinearize, .a = "sum"})
      .Output("y");
  ASSERT_OK_AND_ASSIGN(const auto program, Check(builder));
  EXPECT_EQ(program->edges.at("sum").component_count, 3);
}

TEST(ProgramChecker, KeysAreExactlyThoseThatOperationsRead) {
  SpecBuilder builder(SmallContext());
  builder.Input("x")
      .Constant("d", HostTensor<double>(value::DType::kFloat64, {4, 1}, {1, 2, 3, 4}))
      .Constant("t", Offsets({0, 1, 8, 17}))
      .Add({.name = "r", .kind = Kind::kRotate, .a = "x", .step = -3})
      .Add({.name = "same", .kind = Kind::kRotate, .a = "r", .step = 125})
      .Add({.name = "still", .kind = Kind::kRotate, .a = "same", .step = 256})
      .Add({.name = "c", .kind = Kind::kConjugate, .a = "still"})
      .Add({.name = "y",
            .kind = Kind::kLinearTransform,
            .a = "c",
            .constant = "d",
            .expansion = {.repeat = 1, .tile = true},
            .offsets = "t",
            .baby_span = 8})
      .Output("y");
  ASSERT_OK_AND_ASSIGN(const auto program, Check(builder));
  // Steps 125 (once), baby step 1, giant steps 8 and 16; a rotation by a multiple of S needs none.
  EXPECT_THAT(program->keys.ids(), ElementsAre(KeyId::Rotation(1, 128), KeyId::Rotation(8, 128),
                                               KeyId::Rotation(16, 128), KeyId::Rotation(125, 128),
                                               KeyId::Conjugation()));
}

TEST(ProgramChecker, TheSecurityPolicyIsTheContexts) {
  const SpecBuilder builder = Square();
  EXPECT_THAT(CheckProgram(builder.Build(), {}, ckks::SecurityPolicy::k128BitClassical),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("program 'test': context: log2(QP): expected at most 0")));
}

// ---- refusals: one row spoils a right program and gives the message

struct Refusal {
  const char* name;
  void (*spoil)(SpecBuilder& builder);
  const char* message;
};
std::ostream& operator<<(std::ostream& out, const Refusal& refusal) { return out << refusal.name; }

class ProgramCheckerRefuses : public ::testing::TestWithParam<Refusal> {};

// Appends an operation whose result is an output.
void AppendAsOutput(SpecBuilder& builder, Operation operation) {
  const std::string name = operation.name;
  builder.Add(std::move(operation)).Output(name);
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

const Refusal kRefusals[] = {
    {"NameWithOtherCharacters", [](SpecBuilder& b) { b.spec().name = "Test"; },
     "program 'Test': name: expected 1 to 64 of a-z 0-9 _ -"},
    {"NoName", [](SpecBuilder& b) { b.spec().name = ""; }, "program '': name: expected 1 to 64"},
    {"VersionZero", [](SpecBuilder& b) { b.spec().version = 0; },
     "program 'test': version: expected at least 1, got 0"},
    {"ContextThatIsNone", [](SpecBuilder& b) { b.spec().context.p_primes.clear(); },
     "program 'test': context: p_primes: expected at least 1, got 0"},
    {"NoInputs", [](SpecBuilder& b) { b.spec().inputs.clear(); },
     "program 'test': expected at least one input, operation and output, got 0, 3 and 1"},
    {"NoOperations", [](SpecBuilder& b) { b.spec().operations.clear(); }, "got 1, 0 and 1"},
    {"NoOutputs", [](SpecBuilder& b) { b.spec().outputs.clear(); }, "got 1, 3 and 0"},

    {"InputDepthBeyondTheLast", [](SpecBuilder& b) { b.spec().inputs[0].depth = 4; },
     "program 'test', input 'x': depth: expected 0 to 3, got 4"},
    {"InputScaleBelowOne", [](SpecBuilder& b) { b.spec().inputs[0].scale = 0.5; },
     "input 'x': scale: expected at least 1, got 0.5 at depth 0"},
    {"InputScaleInfinite", [](SpecBuilder& b) { b.spec().inputs[0].scale = kInfinity; },
     "input 'x': scale: expected at least 1, got inf at depth 0"},
    {"InputScaleAboveTheModulus", [](SpecBuilder& b) { b.Input("w", 3, std::ldexp(1.0, 50)); },
     "input 'w': scale: expected below half of the modulus, 2^49.00 at depth 3, got 2^50; rescale "
     "earlier"},
    {"InputLayoutBeyondTheSlots",
     [](SpecBuilder& b) {
       b.spec().inputs[0].layout = {2, 1, 65, 2};
     },
     "input 'x': layout: expected slots below 128, but element 64 of item 1 lies beyond"},
    {"InputLayoutBeyondTheIntegers",
     [](SpecBuilder& b) {
       b.spec().inputs[0].layout = {int64_t{1} << 62, 4, int64_t{1} << 62, 4};
     },
     "input 'x': layout: expected slots below 128"},
    {"InputLayoutThatOverlaps",
     [](SpecBuilder& b) {
       b.spec().inputs[0].layout = {3, 4, 5, 2};
     },
     "input 'x': layout: slot 4 is given twice, the second time to element 0 of item 1"},
    {"InputLayoutOfStrideZero", [](SpecBuilder& b) { b.spec().inputs[0].layout.item_stride = 0; },
     "input 'x': layout: expected counts and strides of at least 1, got 1 items 0 apart"},
    {"InputNameTwice", [](SpecBuilder& b) { b.Input("x"); },
     "input 'x': name: another edge has it already"},
    {"InputNameWithABlank", [](SpecBuilder& b) { b.Input("a b"); },
     "input 'a b': name: expected 1 to 64 of A-Z . a-z 0-9 _ -"},

    {"OperationNameOfAnInput",
     [](SpecBuilder& b) { b.Add({.name = "x", .kind = Kind::kNegate, .a = "y"}); },
     "operation 'x': name: another edge has it already"},
    {"OperandThatNothingMakes", [](SpecBuilder& b) { b.spec().operations[1].a = "z"; },
     "operation 'short': relinearize reads 'z', which is no input and no operation before it"},
    {"OperandMadeLater", [](SpecBuilder& b) { b.spec().operations[0].a = "y"; },
     "operation 'x2': square reads 'y', which is no input and no operation before it"},
    {"SecondOperandMissing",
     [](SpecBuilder& b) { AppendAsOutput(b, {.name = "z", .kind = Kind::kAdd, .a = "y"}); },
     "operation 'z': add reads '', which is no input"},
    {"SumAtTwoDepths",
     [](SpecBuilder& b) {
       AppendAsOutput(b, {.name = "z", .kind = Kind::kAdd, .a = "x", .b = "y"});
     },
     "program 'test', operation 'z': add needs equal depths, got 'x' 2^40 at depth 0 and 'y' "},
    {"SumAtTwoDepthsSaysWhatMends",
     [](SpecBuilder& b) {
       AppendAsOutput(b, {.name = "z", .kind = Kind::kAdd, .a = "y", .b = "x"});
     },
     " at depth 1 and 'x' 2^40 at depth 0; drop_to_depth 'x' to 1 first"},
    {"SumOfFarScales",
     [](SpecBuilder& b) {
       b.Input("b", 0, std::ldexp(1.0, 80));
       AppendAsOutput(b, {.name = "z", .kind = Kind::kSubtract, .a = "x", .b = "b"});
     },
     "program 'test', operation 'z': subtract needs equal scales, got 'x' 2^40 at depth 0 and 'b' "
     "2^80 at depth 0; rescale 'b' first"},
    {"SumOfScalesOneBitApart",
     [](SpecBuilder& b) {
       b.Input("b", 0, std::nextafter(std::ldexp(1.0, 40), kInfinity));
       AppendAsOutput(b, {.name = "z", .kind = Kind::kAdd, .a = "x", .b = "b"});
     },
     "got 'x' 2^40 at depth 0 and 'b' 2^40.000000 (1099511627776.0002) at depth 0; state the "
     "result_scale of 'b' so that they meet"},
    {"SumOfScalesNearby",
     [](SpecBuilder& b) {
       b.Input("b", 0, std::ldexp(1.5, 40));
       AppendAsOutput(b, {.name = "z", .kind = Kind::kAdd, .a = "x", .b = "b"});
     },
     "at depth 0; state the scale of a constant before so that they meet"},
    {"ResultScaleOfARescaleThatIsAnother",
     [](SpecBuilder& b) { b.spec().operations[2].result_scale = std::ldexp(1.0, 40); },
     "operation 'y': rescale result_scale: expected 2^40.000000 ("},
    {"ResultScaleThatIsNotANumber",
     [](SpecBuilder& b) { b.spec().operations[2].result_scale = std::nan(""); },
     "operation 'y': rescale result_scale: expected 2^40.000000 ("},
    {"ResultScaleOfAKindThatStatesNone",
     [](SpecBuilder& b) { b.spec().operations[1].result_scale = 1024; },
     "operation 'short': relinearize takes no result_scale, got 1024"},
    {"ResultScaleBesideAScaleThatGivesAnother",
     [](SpecBuilder& b) {
       b.Constant("c", Slots({1}));
       AppendAsOutput(b, {.name = "z",
                          .kind = Kind::kMultiplyPlain,
                          .a = "x",
                          .constant = "c",
                          .scale = 1024,
                          .result_scale = std::ldexp(1.0, 51)});
     },
     "operation 'z': multiply_plain result_scale: expected 2^50 but for rounding, got 2^51"},
    {"ProductOfThreeComponents",
     [](SpecBuilder& b) {
       AppendAsOutput(b, {.name = "z", .kind = Kind::kMultiply, .a = "x", .b = "x2"});
     },
     "operation 'z': multiply needs two components, got 3 of 'x2'; relinearize 'x2' first"},
    {"ProductAtTwoDepths",
     [](SpecBuilder& b) {
       AppendAsOutput(b, {.name = "z", .kind = Kind::kMultiply, .a = "x", .b = "y"});
     },
     "operation 'z': multiply needs equal depths"},
    {"ProductBeyondTheModulus",
     [](SpecBuilder& b) {
       b.Input("w", 3);
       AppendAsOutput(b, {.name = "z", .kind = Kind::kMultiply, .a = "w", .b = "w"});
     },
     "operation 'z': scale: expected below half of the modulus, 2^49.00 at depth 3, got 2^80"},
    {"SquareOfThreeComponents",
     [](SpecBuilder& b) { AppendAsOutput(b, {.name = "z", .kind = Kind::kSquare, .a = "x2"}); },
     "operation 'z': square needs two components, got 3 of 'x2'"},
    {"RelinearizeOfTwoComponents",
     [](SpecBuilder& b) { AppendAsOutput(b, {.name = "z", .kind = Kind::kRelinearize, .a = "x"}); },
     "operation 'z': relinearize needs three components, got 2 of 'x'; leave it out"},
    {"RotateOfThreeComponents",
     [](SpecBuilder& b) {
       AppendAsOutput(b, {.name = "z", .kind = Kind::kRotate, .a = "x2", .step = 1});
     },
     "operation 'z': rotate needs two components, got 3 of 'x2'"},
    {"ConjugateOfThreeComponents",
     [](SpecBuilder& b) { AppendAsOutput(b, {.name = "z", .kind = Kind::kConjugate, .a = "x2"}); },
     "operation 'z': conjugate needs two components, got 3 of 'x2'"},
    {"RescaleAtTheLastDepth",
     [](SpecBuilder& b) {
       b.Input("w", 3);
       AppendAsOutput(b, {.name = "z", .kind = Kind::kRescale, .a = "w"});
     },
     "operation 'z': rescale needs a depth below the last one, 3, got 'w' 2^40 at depth 3"},
    {"RescaleOfNothingLeft",
     [](SpecBuilder& b) {
       b.Input("w", 0, 1024);
       AppendAsOutput(b, {.name = "z", .kind = Kind::kRescale, .a = "w"});
     },
     "operation 'z': scale: expected at least 1, got "},
    {"DropUpwards",
     [](SpecBuilder& b) {
       AppendAsOutput(b, {.name = "z", .kind = Kind::kDropToDepth, .a = "y", .depth = 1});
     },
     "operation 'z': drop_to_depth needs a depth above that of 'y' "},
    {"DropBeyondTheLast",
     [](SpecBuilder& b) {
       AppendAsOutput(b, {.name = "z", .kind = Kind::kDropToDepth, .a = "x", .depth = 4});
     },
     "at depth 0 and at most 3, got 4"},

    {"ConstantThatIsMissing",
     [](SpecBuilder& b) {
       AppendAsOutput(b, {.name = "z", .kind = Kind::kAddPlain, .a = "x", .constant = "c"});
     },
     "operation 'z': constant 'c' is not in the constants file"},
    {"ConstantOfIntegers",
     [](SpecBuilder& b) {
       b.Constant("c", Offsets({1}));
       AppendAsOutput(b, {.name = "z", .kind = Kind::kAddPlain, .a = "x", .constant = "c"});
     },
     "operation 'z': constant 'c': expected float64 or float32, got int64"},
    {"ConstantOfTwoDimensions",
     [](SpecBuilder& b) {
       b.Constant("c", HostTensor<double>(value::DType::kFloat64, {1, 2}, {1, 2}));
       AppendAsOutput(b, {.name = "z", .kind = Kind::kSubtractPlain, .a = "x", .constant = "c"});
     },
     "operation 'z': constant 'c': expected shape [length], got [1, 2]"},
    {"ConstantBeyondTheSlots",
     [](SpecBuilder& b) {
       b.Constant("c", Slots(std::vector<double>(33, 1)));
       AppendAsOutput(b, {.name = "z",
                          .kind = Kind::kAddPlain,
                          .a = "x",
                          .constant = "c",
                          .expansion = {.repeat = 4, .tile = false}});
     },
     "constant 'c': expected at most 128 slots, got 33 numbers repeated 4 times"},
    {"ConstantThatDoesNotTile",
     [](SpecBuilder& b) {
       b.Constant("c", Slots({1, 2, 3}));
       AppendAsOutput(b, {.name = "z",
                          .kind = Kind::kAddPlain,
                          .a = "x",
                          .constant = "c",
                          .expansion = {.repeat = 2, .tile = true}});
     },
     "constant 'c': expected a tile whose length divides 128, got 6 slots"},
    {"ConstantRepeatedZeroTimes",
     [](SpecBuilder& b) {
       b.Constant("c", Slots({1}));
       AppendAsOutput(b, {.name = "z",
                          .kind = Kind::kAddPlain,
                          .a = "x",
                          .constant = "c",
                          .expansion = {.repeat = 0, .tile = false}});
     },
     "constant 'c': expected a repeat of at least 1, got 0"},
    {"ConstantWithoutNumbers",
     [](SpecBuilder& b) {
       b.Constant("c", Slots({}));
       AppendAsOutput(b, {.name = "z", .kind = Kind::kAddPlain, .a = "x", .constant = "c"});
     },
     "constant 'c': expected at least one number, got none"},
    {"ConstantThatIsNotANumber",
     [](SpecBuilder& b) {
       b.Constant("c", Slots({1, std::nan(""), 2}));
       AppendAsOutput(b, {.name = "z", .kind = Kind::kAddPlain, .a = "x", .constant = "c"});
     },
     "constant 'c': expected finite numbers, got nan"},
    {"ConstantTooLargeToEncode",
     [](SpecBuilder& b) {
       b.Input("w", 3).Constant("c", Slots({300, -1e6}));
       AppendAsOutput(b, {.name = "z", .kind = Kind::kAddPlain, .a = "w", .constant = "c"});
     },
     "constant 'c': expected magnitudes up to 2^8.00 at scale 2^40 and depth 3, got 1e+06"},
    {"MultiplierScaleAtTheLastDepth",
     [](SpecBuilder& b) {
       b.Input("w", 3).Constant("c", Slots({1}));
       AppendAsOutput(b, {.name = "z", .kind = Kind::kMultiplyPlain, .a = "w", .constant = "c"});
     },
     "operation 'z': no rescale follows at the last depth, 3; state the scale of the constant"},
    {"MultiplierScaleBelowOne",
     [](SpecBuilder& b) {
       b.Constant("c", Slots({1}));
       AppendAsOutput(
           b, {.name = "z", .kind = Kind::kMultiplyPlain, .a = "x", .constant = "c", .scale = -2});
     },
     "operation 'z': scale: expected at least 1, or 0 for the primes that the next rescale drops, "
     "got -2"},
    {"OffsetsOfAnotherCount",
     [](SpecBuilder& b) {
       b.Constant("d", HostTensor<double>(value::DType::kFloat64, {2, 1}, {1, 2}))
           .Constant("t", Offsets({0, 1, 2}));
       AppendAsOutput(b, {.name = "z",
                          .kind = Kind::kLinearTransform,
                          .a = "x",
                          .constant = "d",
                          .offsets = "t"});
     },
     "operation 'z': constant 't': expected int64 [2], one for each row of 'd', got int64 [3]"},
    {"OffsetsOfFloats",
     [](SpecBuilder& b) {
       b.Constant("d", HostTensor<double>(value::DType::kFloat64, {1, 1}, {1}))
           .Constant("t", Slots({0}));
       AppendAsOutput(b, {.name = "z",
                          .kind = Kind::kLinearTransform,
                          .a = "x",
                          .constant = "d",
                          .offsets = "t"});
     },
     "operation 'z': constant 't': expected int64 [1], one for each row of 'd', got float64 [1]"},
    {"OffsetsTwice",
     [](SpecBuilder& b) {
       b.Constant("d", HostTensor<double>(value::DType::kFloat64, {2, 1}, {1, 2}))
           .Constant("t", Offsets({5, 5}));
       AppendAsOutput(b, {.name = "z",
                          .kind = Kind::kLinearTransform,
                          .a = "x",
                          .constant = "d",
                          .offsets = "t"});
     },
     "operation 'z': linear_transform by constant 't': "},
    {"OffsetsBeyondTheSlots",
     [](SpecBuilder& b) {
       b.Constant("d", HostTensor<double>(value::DType::kFloat64, {1, 1}, {1}))
           .Constant("t", Offsets({128}));
       AppendAsOutput(b, {.name = "z",
                          .kind = Kind::kLinearTransform,
                          .a = "x",
                          .constant = "d",
                          .offsets = "t"});
     },
     "operation 'z': linear_transform by constant 't': "},
    {"TransformOfThreeComponents",
     [](SpecBuilder& b) {
       b.Constant("d", HostTensor<double>(value::DType::kFloat64, {1, 1}, {1}))
           .Constant("t", Offsets({0}));
       AppendAsOutput(b, {.name = "z",
                          .kind = Kind::kLinearTransform,
                          .a = "x2",
                          .constant = "d",
                          .offsets = "t"});
     },
     "operation 'z': linear_transform needs two components, got 3 of 'x2'"},

    {"OutputThatNothingMakes", [](SpecBuilder& b) { b.spec().outputs[0].edge = "z"; },
     "output 'y': edge: 'z' is no input and no operation"},
    {"OutputThatIsAnInput", [](SpecBuilder& b) { b.spec().outputs[0].edge = "x"; },
     "output 'y': edge: 'x' is an input; expected an operation"},
    {"OutputNameTwice", [](SpecBuilder& b) { b.Output("y"); },
     "output 'y': name: another output has it already"},
    {"OutputEdgeTwice",
     [](SpecBuilder& b) {
       b.spec().outputs.push_back({"again", "y", {}, "", 0});
     },
     "output 'again': edge: 'y' is another output already"},
    {"OutputOfThreeComponents", [](SpecBuilder& b) { b.Output("x2"); },
     "output 'x2': expected two components, got 3 of 'x2'; relinearize 'x2' first"},
    {"OutputLayoutBeyondTheSlots",
     [](SpecBuilder& b) { b.spec().outputs[0].layout.element_count = 129; },
     "output 'y': layout: expected slots below 128"},
    {"OutputBeyondTheModulus",
     [](SpecBuilder& b) {
       b.Input("w", 3).Add({.name = "z", .kind = Kind::kNegate, .a = "w"}).Output("z", 512);
     },
     "output 'z': magnitude_bound: expected below 2^9.00, which the modulus holds of 'z' 2^40 at "
     "depth 3, got 512"},
    {"OutputBoundNegative", [](SpecBuilder& b) { b.spec().outputs[0].magnitude_bound = -1; },
     "output 'y': magnitude_bound: expected a finite number, 0 where it is not stated, got -1"},
    {"OutputErrorsNotANumber",
     [](SpecBuilder& b) { b.spec().outputs[0].errors.largest = std::nan(""); },
     "output 'y': errors: expected finite numbers of at least 0, got nan, 0 and 0 elements"},
    {"EdgeThatNothingReads",
     [](SpecBuilder& b) { b.Add({.name = "z", .kind = Kind::kNegate, .a = "x"}); },
     "program 'test': edge 'z': nothing reads it; make it an output or leave it out"},
    {"InputThatNothingReads", [](SpecBuilder& b) { b.Input("w"); },
     "program 'test': edge 'w': nothing reads it"},
};

TEST_P(ProgramCheckerRefuses, AndSaysWhereAndWhy) {
  SpecBuilder builder = Square();
  GetParam().spoil(builder);
  EXPECT_THAT(Check(builder),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(GetParam().message)));
}

INSTANTIATE_TEST_SUITE_P(All, ProgramCheckerRefuses, ::testing::ValuesIn(kRefusals),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace cipherd::programs
