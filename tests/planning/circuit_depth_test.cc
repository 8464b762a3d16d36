#include "core/planning/circuit_depth.h"

#include <string>
#include <utility>

#include "core/planning/circuit_builder.h"
#include "gtest/gtest.h"

namespace cipherd::planning {
namespace {

TEST(CircuitDepths, ProductsAreOneDeeperAndAllElseIsNot) {
  CircuitBuilder builder("test", 4);
  const std::string x = builder.Input("x", 4);
  const std::string square = builder.Square(x);
  const std::string scaled = builder.MultiplyPlain(square, 2.0);
  const std::string mixed = builder.Add(x, scaled);
  const std::string moved = builder.AddPlain(builder.Rotate(builder.Negate(mixed), 1), 1.0);
  const std::string product = builder.Multiply(x, moved);
  const std::string transform = builder.LinearTransform(product, {{1.0}}, {{0}});
  const std::string difference = builder.Subtract(transform, square);
  const Circuit circuit = std::move(builder).Build();
  const auto depths = CircuitDepths(circuit);
  EXPECT_EQ(depths.at(x), 0);
  EXPECT_EQ(depths.at(square), 1);
  EXPECT_EQ(depths.at(scaled), 2);
  EXPECT_EQ(depths.at(mixed), 2);
  EXPECT_EQ(depths.at(moved), 2);
  EXPECT_EQ(depths.at(product), 3);
  EXPECT_EQ(depths.at(transform), 4);
  EXPECT_EQ(depths.at(difference), 4);
  EXPECT_EQ(CircuitDepth(circuit), 4);
}

}  // namespace
}  // namespace cipherd::planning
