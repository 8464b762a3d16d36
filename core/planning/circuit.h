// A circuit: what is computed on slots, as data, without depths, scales, keys or a context.
//
//   Circuit circuit = ...;   // lowered from a model (model_lowering.h), or made by hand
//   CIPHERD_ASSIGN_OR_RETURN(Plan plan, MakePlan(circuit, options));   // plan.h: a program
//
// Numbers stand in positions. position_count is a power of two; a ciphertext carries as many items
// side by side as its S slots have room for, B = S / position_count: position p of item k is slot
// B·p + k. So a rotation by t positions turns the numbers of every item around one cycle, and
// nothing here depends on S.
//
// A circuit is plain data: checked by CheckCircuit (circuit_check.h), evaluated in float64 by
// EvaluateCircuit (circuit_twin.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/programs/constants.h"

namespace cipherd::planning {

// Elements in positions 0 … element_count - 1; 0 in the positions behind them.
struct CircuitInput {
  std::string name;
  int64_t element_count = 1;
  // Largest magnitude that an element is expected to have.
  double magnitude_bound = 1;
  std::string description = {};
};

enum class CircuitKind : uint8_t {
  kAdd,
  kSubtract,
  kNegate,
  kAddPlain,
  kSubtractPlain,
  kMultiply,
  kSquare,
  kMultiplyPlain,
  kRotate,
  kLinearTransform,
};
// "add", "linear_transform", …: the names of programs::OperationKind.
std::string_view ToString(CircuitKind kind);

// One operation; its name is the edge that it makes. Fields that a kind does not use keep their
// defaults.
struct CircuitOperation {
  std::string name = {};
  CircuitKind kind = CircuitKind::kAdd;
  std::string a = {};
  // kAdd, kSubtract, kMultiply.
  std::string b = {};
  // Plain operations: float64 [length]. kLinearTransform: diagonals float64 [count, length]. The
  // length is a power of two, at most position_count, and the numbers repeat with it as a period.
  std::string constant = {};
  // kLinearTransform: int64 [count], in positions, distinct, in [0, position_count):
  // result[p] = sum over i of diagonals[i][p mod length] · a[(p + offsets[i]) mod position_count].
  std::string offsets = {};
  // kRotate, in positions, any sign: result[p] = a[(p + step) mod position_count].
  int64_t step = 0;
};

// The edges that an operation reads: `a`, then `b` where its kind takes two.
std::vector<std::string_view> OperandsOf(const CircuitOperation& operation);

// Element j is position element_stride · j.
struct CircuitOutput {
  std::string name;
  std::string edge;
  int64_t element_count = 1;
  int64_t element_stride = 1;
  // Largest magnitude that any position of the edge is expected to have, those of no element too:
  // it decides the size of the base prime.
  double magnitude_bound = 1;
  std::string description = {};
};

struct Circuit {
  std::string name;
  int64_t version = 1;
  std::string description;
  int64_t position_count = 1;
  std::vector<CircuitInput> inputs;
  // In an order in which operands come before what reads them.
  std::vector<CircuitOperation> operations;
  std::vector<CircuitOutput> outputs;
  programs::Constants constants;
};

}  // namespace cipherd::planning
