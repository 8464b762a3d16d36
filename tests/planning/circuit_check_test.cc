#include "core/planning/circuit_check.h"

#include <cstring>
#include <limits>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "core/planning/circuit_builder.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::planning {
namespace {

using ::testing::HasSubstr;
using testing::StatusIs;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// x -> h = x + c -> t = transform(h): a circuit that is right, for tests to spoil.
Circuit Right() {
  CircuitBuilder builder("test", 4);
  const std::string x = builder.Input("x", 3);
  const std::string h = builder.AddPlain(x, {{1, 2, 3, 4}}, "h");
  const std::string t = builder.LinearTransform(h, {{1, 2, 3, 4, 5, 6, 7, 8}}, {{0, 3}}, "t");
  builder.Output({.name = "y", .edge = t, .element_count = 2, .element_stride = 3});
  return std::move(builder).Build();
}

template <typename T>
value::Tensor HostTensor(value::DType dtype, std::vector<int64_t> shape,
                         const std::vector<T>& numbers) {
  value::Tensor tensor = *value::Tensor::AllocateHost(dtype, std::move(shape));
  if (!numbers.empty()) std::memcpy(tensor.data(), numbers.data(), numbers.size() * sizeof(T));
  return tensor;
}

value::Tensor Values(const std::vector<double>& numbers) {
  return HostTensor(value::DType::kFloat64, {static_cast<int64_t>(numbers.size())}, numbers);
}

value::Tensor Offsets(const std::vector<int64_t>& numbers) {
  return HostTensor(value::DType::kInt64, {static_cast<int64_t>(numbers.size())}, numbers);
}

TEST(CircuitCheck, ARightCircuitPasses) { EXPECT_OK(CheckCircuit(Right())); }

TEST(CircuitCheck, ShorterPeriodsPass) {
  Circuit circuit = Right();
  circuit.constants["h.values"] = Values({1, 2});
  EXPECT_OK(CheckCircuit(circuit));
}

// One row spoils a right circuit and gives the message.
struct Refusal {
  const char* name;
  void (*spoil)(Circuit& circuit);
  const char* message;
};
std::ostream& operator<<(std::ostream& out, const Refusal& refusal) { return out << refusal.name; }

const Refusal kRefusals[] = {
    {"NameWithOtherCharacters", [](Circuit& c) { c.name = "Test"; },
     "circuit 'Test': name: expected 1 to 64 of a-z 0-9 _ -"},
    {"VersionZero", [](Circuit& c) { c.version = 0; },
     "circuit 'test': version: expected at least 1, got 0"},
    {"PositionsThatAreNoPowerOfTwo", [](Circuit& c) { c.position_count = 12; },
     "circuit 'test': position_count: expected a power of two, got 12"},
    {"NoPositions", [](Circuit& c) { c.position_count = 0; }, "expected a power of two, got 0"},
    {"NegativePositions",
     [](Circuit& c) { c.position_count = std::numeric_limits<int64_t>::min(); },
     "expected a power of two, got -9223372036854775808"},
    {"NoInputs", [](Circuit& c) { c.inputs.clear(); },
     "circuit 'test': expected at least one input, operation and output, got 0, 2 and 1"},
    {"NoOperations", [](Circuit& c) { c.operations.clear(); }, "got 1, 0 and 1"},
    {"NoOutputs", [](Circuit& c) { c.outputs.clear(); }, "got 1, 2 and 0"},

    {"InputNameWithABlank", [](Circuit& c) { c.inputs[0].name = "a b"; },
     "circuit 'test', input 'a b': name: expected 1 to 64 of A-Z . a-z 0-9 _ -"},
    {"InputNameTwice", [](Circuit& c) { c.inputs.push_back(c.inputs[0]); },
     "input 'x': name: another edge has it already"},
    {"InputBeyondThePositions", [](Circuit& c) { c.inputs[0].element_count = 5; },
     "input 'x': element_count: expected 1 to 4, the position_count, got 5"},
    {"InputOfNothing", [](Circuit& c) { c.inputs[0].element_count = 0; }, "got 0"},
    {"InputBoundZero", [](Circuit& c) { c.inputs[0].magnitude_bound = 0; },
     "input 'x': magnitude_bound: expected a finite number above 0, got 0"},
    {"InputBoundNan", [](Circuit& c) { c.inputs[0].magnitude_bound = kNan; }, "above 0, got nan"},

    {"OperationNameOfAnInput", [](Circuit& c) { c.operations[1].name = "x"; },
     "operation 'x': name: another edge has it already"},
    {"OperationNameTooLong", [](Circuit& c) { c.operations[1].name = std::string(65, 'a'); },
     "name: expected 1 to 64"},
    {"OperandThatNothingMakes", [](Circuit& c) { c.operations[1].a = "z"; },
     "circuit 'test', operation 't': linear_transform reads 'z', which is no input and no "
     "operation before it"},
    {"OperandMadeLater", [](Circuit& c) { c.operations[0].a = "t"; },
     "operation 'h': add_plain reads 't', which is no input and no operation before it"},
    {"OperandOfItself", [](Circuit& c) { c.operations[0].a = "h"; },
     "operation 'h': add_plain reads 'h'"},
    {"SecondOperandMissing", [](Circuit& c) { c.operations[0].kind = CircuitKind::kMultiply; },
     "operation 'h': multiply reads '', which is no input"},

    {"ConstantThatIsMissing", [](Circuit& c) { c.constants.erase("h.values"); },
     "operation 'h': add_plain reads constant 'h.values', which the circuit does not have"},
    {"ConstantOfIntegers",
     [](Circuit& c) {
       c.constants["h.values"] = Offsets({1, 2});
     },
     "operation 'h': constant 'h.values': expected float64 [length], got int64 [2]"},
    {"ConstantOfTwoDimensions",
     [](Circuit& c) { c.constants["h.values"] = c.constants["t.diagonals"]; },
     "constant 'h.values': expected float64 [length], got float64 [2, 4]"},
    {"ConstantOfNothing", [](Circuit& c) { c.constants["h.values"] = Values({}); },
     "a power of two and at most 4, got 0"},
    {"ConstantOfThree",
     [](Circuit& c) {
       c.constants["h.values"] = Values({1, 2, 3});
     },
     "operation 'h': constant 'h.values': expected a length that is a power of two and at most 4, "
     "got 3; fill up with zeros to 4"},
    {"ConstantBeyondThePositions",
     [](Circuit& c) { c.constants["h.values"] = Values(std::vector<double>(8, 1)); },
     "a power of two and at most 4, got 8"},
    {"ConstantNan",
     [](Circuit& c) {
       c.constants["h.values"] = Values({1, kNan});
     },
     "constant 'h.values': expected finite numbers, got nan"},
    {"ConstantInfinite",
     [](Circuit& c) { c.constants["t.diagonals"].data_as<double>()[7] = -kInfinity; },
     "operation 't': constant 't.diagonals': expected finite numbers, got -inf"},

    {"DiagonalsOfOneDimension",
     [](Circuit& c) {
       c.constants["t.diagonals"] = Values({1, 2});
     },
     "constant 't.diagonals': expected float64 [count, length], got float64 [2]"},
    {"DiagonalsOfLengthThree",
     [](Circuit& c) {
       c.constants["t.diagonals"] =
           HostTensor<double>(value::DType::kFloat64, {2, 3}, {1, 2, 3, 4, 5, 6});
     },
     "constant 't.diagonals': expected a length that is a power of two and at most 4, got 3"},
    {"NoDiagonals",
     [](Circuit& c) {
       c.constants["t.diagonals"] = HostTensor<double>(value::DType::kFloat64, {0, 4}, {});
       c.constants["t.offsets"] = Offsets({});
     },
     "constant 't.diagonals': expected at least one diagonal"},
    {"OffsetsThatAreMissing", [](Circuit& c) { c.constants.erase("t.offsets"); },
     "operation 't': linear_transform reads constant 't.offsets', which the circuit does not have"},
    {"OffsetsOfFloats",
     [](Circuit& c) {
       c.constants["t.offsets"] = Values({0, 1});
     },
     "constant 't.offsets': expected int64 [2], one for each row of 't.diagonals', got float64 "
     "[2]"},
    {"OffsetsTooFew", [](Circuit& c) { c.constants["t.offsets"] = Offsets({0}); },
     "expected int64 [2], one for each row of 't.diagonals', got int64 [1]"},
    {"OffsetTwice",
     [](Circuit& c) {
       c.constants["t.offsets"] = Offsets({3, 3});
     },
     "operation 't': constant 't.offsets': offset 3 is given twice; add its diagonals up"},
    {"OffsetNegative",
     [](Circuit& c) {
       c.constants["t.offsets"] = Offsets({0, -1});
     },
     "expected offsets in [0, 4), got -1; take them modulo the position_count"},
    {"OffsetBeyondThePositions",
     [](Circuit& c) {
       c.constants["t.offsets"] = Offsets({0, 4});
     },
     "expected offsets in [0, 4), got 4"},

    {"OutputNameTwice", [](Circuit& c) { c.outputs.push_back(c.outputs[0]); },
     "circuit 'test', output 'y': name: another output has it already"},
    {"OutputNameEmpty", [](Circuit& c) { c.outputs[0].name = ""; }, "output '': name: expected 1"},
    {"OutputOfNoEdge", [](Circuit& c) { c.outputs[0].edge = "z"; },
     "output 'y': edge: 'z' is no input and no operation"},
    {"OutputOfAnInput", [](Circuit& c) { c.outputs[0].edge = "x"; },
     "output 'y': edge: 'x' is an input; expected an operation"},
    {"OutputOfAnEdgeTwice",
     [](Circuit& c) {
       c.outputs.push_back(c.outputs[0]);
       c.outputs[1].name = "w";
     },
     "output 'w': edge: 't' is another output already"},
    {"OutputBeyondThePositions", [](Circuit& c) { c.outputs[0].element_stride = 4; },
     "output 'y': expected elements at positions below 4 with a stride of at least 1, got 2 "
     "elements 4 apart"},
    {"OutputBeyondTheIntegers",
     [](Circuit& c) {
       c.outputs[0].element_stride = int64_t{1} << 40;
       c.outputs[0].element_count = (int64_t{1} << 40) + 1;
     },
     "expected elements at positions below 4"},
    {"OutputOfStrideZero", [](Circuit& c) { c.outputs[0].element_stride = 0; },
     "got 2 elements 0 apart"},
    {"OutputOfNothing", [](Circuit& c) { c.outputs[0].element_count = 0; },
     "got 0 elements 3 apart"},
    {"OutputBoundInfinite", [](Circuit& c) { c.outputs[0].magnitude_bound = kInfinity; },
     "output 'y': magnitude_bound: expected a finite number above 0, got inf"},

    {"InputThatNothingReads", [](Circuit& c) { c.inputs.push_back({.name = "w"}); },
     "circuit 'test': edge 'w': nothing reads it; make it an output or leave it out"},
    {"OperationThatNothingReads", [](Circuit& c) { c.outputs[0].edge = "h"; },
     "edge 't': nothing reads it"},
};

class CircuitCheckRefuses : public ::testing::TestWithParam<Refusal> {};

TEST_P(CircuitCheckRefuses, SayingWhereAndWhatMends) {
  Circuit circuit = Right();
  GetParam().spoil(circuit);
  EXPECT_THAT(CheckCircuit(circuit),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(GetParam().message)));
}

INSTANTIATE_TEST_SUITE_P(Circuits, CircuitCheckRefuses, ::testing::ValuesIn(kRefusals),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace cipherd::planning
