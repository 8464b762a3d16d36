// A program as plain data: a fixed schedule of operations over named edges.
//
// proto/codec reads and writes its protobuf text form (proto/cipherd/v1/program.proto), so that
// core stays free of protobuf. The checker (program_checker.h) gives the edges their states, the
// interpreter (interpreter.h) runs it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/ckks/context_parameters.h"

namespace cipherd::programs {

// Element j of item k is in slot element_stride · j + item_stride · k.
struct SlotLayout {
  int64_t item_count = 1;
  int64_t item_stride = 1;
  int64_t element_count = 1;
  int64_t element_stride = 1;

  bool operator==(const SlotLayout&) const = default;
};

struct ProgramInput {
  std::string name;
  int depth = 0;
  double scale = 0;  // 0: the context's default scale
  SlotLayout layout;
  std::string description;
  // Numbers that the program was planned for; both 0: not stated.
  double lower = 0;
  double upper = 0;

  bool states_range() const { return lower != 0 || upper != 0; }
};

// Of decrypted elements, over samples that were evaluated when the program was made: absolute
// differences from the same model in float64.
struct MeasuredErrors {
  double largest = 0;
  double root_mean_square = 0;
  int64_t element_count = 0;  // 0: nothing was measured

  bool operator==(const MeasuredErrors&) const = default;
};

struct ProgramOutput {
  std::string name;
  std::string edge;
  SlotLayout layout;
  std::string description;
  double magnitude_bound = 0;  // 0: not stated
  MeasuredErrors errors = {};
};

// How the numbers of a constant fill the S slots: each stands in `repeat` consecutive slots, as
// numpy.repeat does; then the whole is repeated cyclically where `tile` is set (its length must
// divide S), else the remaining slots are 0. With pixel j of image k in slot 8j + k, one number per
// pixel is expanded by {8, false}.
struct SlotExpansion {
  int64_t repeat = 1;
  bool tile = false;

  bool operator==(const SlotExpansion&) const = default;
};

enum class OperationKind : uint8_t {
  kAdd,
  kSubtract,
  kNegate,
  kAddPlain,
  kSubtractPlain,
  kMultiply,
  kSquare,
  kMultiplyPlain,
  kRelinearize,
  kRescale,
  kDropToDepth,
  kRotate,
  kConjugate,
  kLinearTransform,
};
// "add", "linear_transform", …
std::string_view ToString(OperationKind kind);

// Relative.
inline constexpr double kResultScaleTolerance = 0x1p-48;

// One operation; its name is the edge that it makes. Fields that a kind does not use keep their
// defaults.
struct Operation {
  std::string name = {};
  OperationKind kind = OperationKind::kAdd;
  std::string a = {};
  // kAdd, kSubtract, kMultiply.
  std::string b = {};
  // Plain operations: [length]. kLinearTransform: diagonals [count, length].
  std::string constant = {};
  // Of `constant`, of each diagonal.
  SlotExpansion expansion = {};
  // kLinearTransform: int64 [count].
  std::string offsets = {};
  // kLinearTransform; 0: chosen.
  int64_t baby_span = 0;
  // kMultiplyPlain, kLinearTransform: the constant is encoded at it; 0: the product of the primes
  // that the next rescale drops, so that the rescaled result has a's scale, exactly where that is a
  // power of two, else within a rounding of binary64.
  double scale = 0;
  // kMultiplyPlain, kLinearTransform, kRescale: the scale that the result is said to have, 0: what
  // arithmetic in binary64 gives. It may differ from that by kResultScaleTolerance: rounding, and
  // nothing else. Sums need scales that are equal to the last bit; this is how a schedule makes
  // them so. A constant without a `scale` of its own is encoded at result_scale / a's scale.
  double result_scale = 0;
  // kRotate: slot j receives slot (j + step) mod S.
  int64_t step = 0;
  // kDropToDepth.
  int depth = 0;
};

// The edges that an operation reads: `a`, then `b` where its kind takes two.
std::vector<std::string_view> OperandsOf(const Operation& operation);

struct ProgramSpec {
  std::string name;
  int64_t version = 1;
  std::string description;
  ckks::ContextParameters context;
  std::string constants_file;
  std::vector<ProgramInput> inputs;
  std::vector<Operation> operations;
  std::vector<ProgramOutput> outputs;
};

}  // namespace cipherd::programs
