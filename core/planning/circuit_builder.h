// Circuits in few words: operations are appended in order, each with a name of its own.
//
//   CircuitBuilder builder("scores", /*position_count=*/16);
//   const std::string x = builder.Input("x", /*element_count=*/10);
//   const std::string products = builder.MultiplyPlain(x, weights, "products");
//   const std::string sum = builder.InnerSum(products, /*count=*/10, /*stride=*/1);
//   builder.Output({.name = "score", .edge = builder.AddPlain(sum, bias)});
//   Circuit circuit = std::move(builder).Build();
//
// Every function that makes an edge returns its name: `base` where it is free, else `base_2`,
// `base_3`, …; without a base, the kind ("multiply_plain", "multiply_plain_2", …). Characters that
// names may not have become '_', and what is too long is cut, so that names of layers serve as
// bases whatever they are. Names of inputs and outputs are taken as they are: callers know them.
//
// A builder refuses nothing. CheckCircuit (circuit_check.h) says what is wrong with a circuit:
// operands that nothing makes, constants of a wrong length, names of inputs that are taken.
//
// Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/planning/circuit.h"
#include "core/value/tensor.h"

namespace cipherd::planning {

class CircuitBuilder {
 public:
  // Requires position_count >= 1.
  CircuitBuilder(std::string name, int64_t position_count);

  int64_t position_count() const { return circuit_.position_count; }
  void set_version(int64_t version) { circuit_.version = version; }
  void set_description(std::string description) { circuit_.description = std::move(description); }

  // ---- inputs and outputs

  std::string Input(CircuitInput input);
  std::string Input(std::string name, int64_t element_count, double magnitude_bound = 1);
  void Output(CircuitOutput output) { circuit_.outputs.push_back(std::move(output)); }

  // ---- operations, one edge each

  std::string Add(std::string_view a, std::string_view b, std::string_view base = {});
  std::string Subtract(std::string_view a, std::string_view b, std::string_view base = {});
  std::string Negate(std::string_view a, std::string_view base = {});
  std::string Multiply(std::string_view a, std::string_view b, std::string_view base = {});
  std::string Square(std::string_view a, std::string_view base = {});
  // result[p] = a[(p + step) mod position_count]; `a` itself where that moves nothing.
  std::string Rotate(std::string_view a, int64_t step, std::string_view base = {});

  // `values` repeat with their length as a period: a power of two, at most position_count. One
  // value is a scalar.
  std::string AddPlain(std::string_view a, std::span<const double> values,
                       std::string_view base = {});
  std::string AddPlain(std::string_view a, double value, std::string_view base = {});
  std::string SubtractPlain(std::string_view a, std::span<const double> values,
                            std::string_view base = {});
  std::string MultiplyPlain(std::string_view a, std::span<const double> values,
                            std::string_view base = {});
  std::string MultiplyPlain(std::string_view a, double value, std::string_view base = {});

  // result[p] = sum over i of diagonals[i][p mod length] · a[(p + offsets[i]) mod position_count].
  // `diagonals` row by row: length is diagonals.size() / offsets.size(). Offsets may have any sign;
  // they are distinct modulo position_count.
  std::string LinearTransform(std::string_view a, std::span<const double> diagonals,
                              std::span<const int64_t> offsets, std::string_view base = {});

  // ---- compounds

  // result[p] = sum over i < count of a[(p + i · stride) mod position_count], by ceil(log2(count))
  // rotations: none can do with less, for a rotation at most doubles the number of positions that
  // are read. Requires 1 <= count < 2^31; 1 gives `a` itself.
  //
  // Two windows of m positions make one of 2m. One of 2m - 1 is made of a window of m and the same
  // without its first position, which is a subtraction of `a` and no rotation.
  std::string InnerSum(std::string_view a, int64_t count, int64_t stride,
                       std::string_view base = {});
  // a at `positions` (modulo position_count), 0 at all others.
  std::string Mask(std::string_view a, std::span<const int64_t> positions,
                   std::string_view base = {});

  // The circuit so far; the builder is spent.
  Circuit Build() &&;

 private:
  // A free name by the rule above.
  std::string NewName(std::string_view base, CircuitKind kind);
  // Appends `operation`, whose name is still its base, and returns the name of its edge.
  std::string Append(CircuitOperation operation);
  std::string AppendPlain(CircuitKind kind, std::string_view a, std::span<const double> values,
                          std::string_view base);
  // InnerSum, with `part` as the base of the edges that lead to the last one.
  std::string AppendInnerSum(std::string_view a, int64_t count, int64_t stride,
                             const std::string& name, const std::string& part);
  // The name that `tensor` is stored under: that of an equal one, else `name`.
  std::string Store(std::string name, value::Tensor tensor);
  // Stores `rows` rows of numbers at their smallest period.
  std::string StoreRows(std::string name, std::span<const double> numbers, int64_t rows,
                        bool is_matrix);

  Circuit circuit_;
  std::set<std::string, std::less<>> names_;
  // By base, the number that its last edge has behind it.
  std::map<std::string, int64_t, std::less<>> last_numbers_;
  // Names of constants by a hash of their content.
  std::unordered_multimap<size_t, std::string> constants_by_hash_;
};

}  // namespace cipherd::planning
