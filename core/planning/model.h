// A model: what is computed on the tensors of one item, as data, without packing, depths or scales.
//
//   Model model = ...;   // from proto/codec/model_codec.h, or made by hand
//   CIPHERD_ASSIGN_OR_RETURN(ModelShapes shapes, CheckModel(model));           // model_check.h
//   CIPHERD_ASSIGN_OR_RETURN(TensorBatch y, EvaluateModel(model, samples));    // model_twin.h
//   CIPHERD_ASSIGN_OR_RETURN(Circuit circuit, LowerModel(model, options));     // model_lowering.h
//
// Tensors are row-major and have no batch dimension; [] is the shape of one number. Operations mean
// what those of the same name mean in ONNX, for one item:
//
//   linear            Gemm: y = W · flatten(a) + bias; W [out, in], y [out]
//   conv2d            Conv: a [cin, h, w], weight [cout, cin / groups, kh, kw], bias [cout];
//                     y [cout, h', w'], h' = (h + top + bottom - ((kh - 1) · dilation + 1)) /
//                     stride
//                     + 1, rounded down; w' likewise
//   average_pool2d    AveragePool: a [c, h, w]; the mean of kernel positions, those in the padding
//                     counted only with count_include_pad
//   add, subtract, multiply       Add, Sub, Mul of two edges of one shape
//   negate, square                Neg; a · a
//   add_constant, multiply_constant   Add, Mul with a constant that NumPy's rules broadcast to a's
//                     shape (a is not broadcast)
//   polynomial        of each number
//   sum               ReduceSum over `axes` (none: all of them); keep_axes leaves them as 1
//   reshape           Reshape to `shape`, in which one number may be -1: what is left
//   select            Gather on flatten(a): y[i] = flatten(a)[indices[i]], y [count]
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/planning/polynomial.h"
#include "core/programs/constants.h"

namespace cipherd::planning {

struct ModelInput {
  std::string name;
  std::vector<int64_t> shape;
  // Every value is expected to be in [lower, upper].
  double lower = -1;
  double upper = 1;
  std::string description = {};
};

enum class ModelKind : uint8_t {
  kLinear,
  kConv2d,
  kAveragePool2d,
  kAdd,
  kSubtract,
  kNegate,
  kMultiply,
  kSquare,
  kAddConstant,
  kMultiplyConstant,
  kPolynomial,
  kSum,
  kReshape,
  kSelect,
};
// "linear", "conv2d", …
std::string_view ToString(ModelKind kind);

// One operation; its name is the edge that it makes. Fields that a kind does not use keep their
// defaults.
struct ModelOperation {
  std::string name = {};
  ModelKind kind = ModelKind::kAdd;
  std::string a = {};
  // kAdd, kSubtract, kMultiply.
  std::string b = {};
  // Names of constants. kLinear, kConv2d: weight, and bias where there is one. kAddConstant,
  // kMultiplyConstant: constant. All of them float64 or float32. kSelect: int64 or int32 indices.
  std::string weight = {};
  std::string bias = {};
  std::string constant = {};
  std::string indices = {};
  // kConv2d, kAveragePool2d: vertical, horizontal.
  std::array<int64_t, 2> strides = {1, 1};
  // Top, left, bottom, right.
  std::array<int64_t, 4> pads = {0, 0, 0, 0};
  // kConv2d.
  std::array<int64_t, 2> dilations = {1, 1};
  int64_t groups = 1;
  // kAveragePool2d.
  std::array<int64_t, 2> kernel = {1, 1};
  bool count_include_pad = false;
  // kPolynomial.
  Polynomial polynomial = {};
  // kSum; negative numbers count from the end.
  std::vector<int64_t> axes = {};
  bool keep_axes = false;
  // kReshape.
  std::vector<int64_t> shape = {};
};

// The edges that an operation reads: `a`, then `b` where its kind takes two.
std::vector<std::string_view> OperandsOf(const ModelOperation& operation);

struct ModelOutput {
  std::string name;
  std::string edge;
  std::string description = {};
};

struct Model {
  std::string name;
  int64_t version = 1;
  std::string description;
  // safetensors file that `constants` come from, relative to the model's own; empty: none.
  std::string constants_file;
  std::vector<ModelInput> inputs;
  // In an order in which operands come before what reads them.
  std::vector<ModelOperation> operations;
  std::vector<ModelOutput> outputs;
  programs::Constants constants;
};

using Shape = std::vector<int64_t>;
// "[4, 28, 28]".
std::string ToString(const Shape& shape);
// Of inputs and operations, by name.
using ModelShapes = std::map<std::string, Shape, std::less<>>;

}  // namespace cipherd::planning
