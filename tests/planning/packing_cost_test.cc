#include "core/planning/packing_cost.h"

#include "core/planning/element_placement.h"
#include "gtest/gtest.h"

namespace cipherd::planning {
namespace {

TEST(PackingCostsTest, DenseMatrixFoldsToTheLesserOfBothPeriods) {
  SparseMatrix dense;
  dense.column_count = 784;
  for (int row = 0; row < 64; ++row) {
    for (int column = 0; column < 784; ++column) dense.Append(column, 1.5);
    dense.EndRow();
  }
  const ElementPlacement source = CompactPlacement({784}), target = CompactPlacement({64});
  const PackingCosts costs(dense, source.positions, target.positions, 1024);
  // 64 diagonals by 12 baby and 4 giant steps, and 4 rotations.
  EXPECT_DOUBLE_EQ(costs.Best(1024, 1024, 64).cost,
                   64 * kDiagonalCost + 12 + 3 * 4 + 4 * kRotationCost);
  EXPECT_GT(costs.Best(1024, 1024, 1024).cost, costs.Best(1024, 1024, 64).cost);
}

TEST(PackingCostsTest, NarrowOperandOfAWideLayerIsRepeatedBefore) {
  SparseMatrix dense;
  dense.column_count = 10;
  for (int row = 0; row < 1000; ++row) {
    for (int column = 0; column < 10; ++column) dense.Append(column, 1.5);
    dense.EndRow();
  }
  const ElementPlacement source = CompactPlacement({10}), target = CompactPlacement({1000});
  const PackingCosts costs(dense, source.positions, target.positions, 1024);
  EXPECT_EQ(costs.Best(1024, 16, 1024).input_period, 16);
  // Not where something else stands beside its elements.
  EXPECT_EQ(costs.Best(1024, 1024, 1024).input_period, 1024);
}

}  // namespace
}  // namespace cipherd::planning
