// A program as plain data: a fixed schedule of operations over named edges.
//
// proto/codec reads and writes its protobuf text form (proto/cipherd/v1/program.proto), so that core stays free
// of protobuf. The checker (program_checker.h) gives the edges their states, the interpreter (interpreter.h)
// runs it.
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
};

struct ProgramOutput {
  std::string name;
  std::string edge;
  SlotLayout layout;
  std::string description;
  double magnitude_bound = 0;  // 0: not stated
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

// One operation; its name is the edge that it makes. Fields that a kind does not use keep their defaults.
struct Operation {
  std::string name;
  OperationKind kind = OperationKind::kAdd;
  std::string a;
  std::string b;          // kAdd, kSubtract, kMultiply
  std::string constant;   // plain operations: slots; kLinearTransform: diagonals [count, S]
  std::string offsets;    // kLinearTransform: int64 [count]
  double scale = 0;       // kMultiplyPlain, kLinearTransform; 0: the primes that the next rescale drops
  int64_t step = 0;       // kRotate
  int64_t baby_span = 0;  // kLinearTransform; 0: chosen
  int depth = 0;          // kDropToDepth
};

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
