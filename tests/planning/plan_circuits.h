// Circuits that plans are made of in tests.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/planning/circuit.h"
#include "core/planning/circuit_builder.h"

namespace cipherd::planning {

inline std::vector<double> RandomNumbers(size_t count, uint64_t seed, double bound = 1) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(-bound, bound);
  std::vector<double> numbers(count);
  for (double& number : numbers) number = uniform(random);
  return numbers;
}

// 16 positions: matrix, square, matrix, bias.
inline Circuit SmallNetwork() {
  CircuitBuilder builder("network", 16);
  const std::string x = builder.Input("x", 10);
  const std::vector<int64_t> offsets = {0, 1, 2, 3, 5, 8, 13};
  const std::string h = builder.LinearTransform(x, RandomNumbers(7 * 16, 1, 0.3), offsets, "h");
  const std::string s = builder.Square(builder.AddPlain(h, RandomNumbers(16, 2), "biased"), "s");
  const std::string y = builder.LinearTransform(s, RandomNumbers(7 * 16, 3, 0.3), offsets, "y");
  builder.Output({.name = "scores",
                  .edge = builder.AddPlain(y, RandomNumbers(16, 4), "scores"),
                  .element_count = 4,
                  .element_stride = 2,
                  .magnitude_bound = 16});
  return std::move(builder).Build();
}

// One value at many depths: x^8 - x^4 y + (2x + 3y) - x, products of different depths summed, a
// late input, a rotation in the middle, and an output before the last depth.
inline Circuit ManyDepths() {
  CircuitBuilder builder("depths", 8);
  const std::string x = builder.Input("x", 8);
  const std::string y = builder.Input("y", 5, 0.5);
  const std::string late = builder.Input("late", 8);
  const std::string x2 = builder.Square(x, "x2");
  const std::string x4 = builder.Square(x2, "x4");
  const std::string x8 = builder.Square(x4, "x8");
  const std::string x4y = builder.Multiply(x4, y, "x4y");
  const std::string sum = builder.Subtract(x8, x4y, "sum");
  const std::string linear =
      builder.Add(builder.MultiplyPlain(x, 2, "2x"), builder.MultiplyPlain(y, 3, "3y"), "linear");
  const std::string all = builder.Subtract(builder.Add(sum, linear, "with_linear"), x, "all");
  const std::string turned = builder.Rotate(all, 3, "turned");
  const std::string end = builder.Add(turned, late, "end");
  builder.Output({.name = "end", .edge = end, .element_count = 8, .magnitude_bound = 16});
  builder.Output({.name = "early",
                  .edge = builder.Negate(linear, "early"),
                  .element_count = 8,
                  .magnitude_bound = 4});
  return std::move(builder).Build();
}

}  // namespace cipherd::planning
