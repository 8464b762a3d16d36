#include "core/planning/matrix_transform.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "core/planning/packing_cost.h"
#include "gtest/gtest.h"

namespace cipherd::planning {
namespace {

ElementPlacement RandomPlacement(int64_t count, int64_t period, std::mt19937& random) {
  std::vector<int32_t> all(period);
  std::iota(all.begin(), all.end(), 0);
  std::shuffle(all.begin(), all.end(), random);
  all.resize(count);
  return {.period = period, .positions = all, .grid = {}};
}

// The content of all positions: elements over and over, and 0.
std::vector<double> Spread(const std::vector<double>& elements, const ElementPlacement& placement,
                           int64_t period, int64_t position_count) {
  std::vector<double> positions(position_count, 0.0);
  for (size_t i = 0; i < elements.size(); ++i) {
    for (int64_t p = placement.positions[i] & (period - 1); p < position_count; p += period) {
      positions[p] = elements[i];
    }
  }
  return positions;
}

// Matrix times vector by a transform and sums of blocks, in every combination of periods.
TEST(MatrixTransformTest, AnyMatrixBetweenAnyPlacements) {
  std::mt19937 random(3);
  constexpr int64_t kPositions = 64;
  for (int round = 0; round < 300; ++round) {
    const int64_t source_period = int64_t{1} << (random() % 7);
    const int64_t target_period = int64_t{1} << (random() % 7);
    const int64_t in = 1 + random() % source_period, out = 1 + random() % target_period;
    const ElementPlacement source = RandomPlacement(in, source_period, random);
    const ElementPlacement target = RandomPlacement(out, target_period, random);
    SparseMatrix matrix;
    matrix.column_count = in;
    std::vector<double> vector(in), expected(out, 0.0);
    for (double& number : vector) number = static_cast<double>(random() % 9);
    for (int64_t row = 0; row < out; ++row) {
      for (int64_t column = 0; column < in; ++column) {
        if (random() % 3 == 0) matrix.Append(column, static_cast<double>(random() % 9) - 4);
      }
      matrix.EndRow();
    }
    matrix.MultiplyAdd(vector, expected);

    for (int64_t period = source.LeastPeriod(); period <= source_period; period *= 2) {
      const MatrixTransform transform = MakeMatrixTransform(matrix, source, period, target);
      ASSERT_EQ(transform.length, std::max(period, target_period));
      ASSERT_TRUE(std::is_sorted(transform.offsets.begin(), transform.offsets.end()));
      ASSERT_LT(transform.offsets.back(), std::min(period, target_period));
      const std::vector<double> a = Spread(vector, source, period, kPositions);
      std::vector<double> z(kPositions, 0.0), sum(kPositions, 0.0);
      for (int64_t p = 0; p < kPositions; ++p) {
        for (size_t i = 0; i < transform.offsets.size(); ++i) {
          z[p] += transform.diagonals[i * transform.length + p % transform.length] *
                  a[(p + transform.offsets[i]) % kPositions];
        }
      }
      for (int64_t p = 0; p < kPositions; ++p) {
        for (int64_t block = 0; block < transform.length; block += target_period) {
          sum[p] += z[(p + block) % kPositions];
        }
      }
      // Positions of no element are 0 too.
      EXPECT_EQ(sum, Spread(expected, target, target_period, kPositions));
    }
  }
}

TEST(MatrixTransformTest, KnowsRotationsAndCommonFactors) {
  const ElementPlacement source = {.period = 8, .positions = {0, 1, 2}, .grid = {}};
  const ElementPlacement moved = {.period = 8, .positions = {6, 7, 0}, .grid = {}};
  const SparseMatrix identity = SparseMatrix::Identity(3);
  EXPECT_TRUE(MakeMatrixTransform(identity, source, 8, moved).IsRotation(source, 8));
  EXPECT_FALSE(MakeMatrixTransform(SparseMatrix::Diagonal({1, 1, 2}), source, 8, moved)
                   .IsRotation(source, 8));
  // An element that is left behind would stand where 0 is expected.
  EXPECT_FALSE(MakeMatrixTransform(SparseMatrix::Diagonal({1, 1, 0}), source, 8, moved)
                   .IsRotation(source, 8));
  EXPECT_EQ(MakeMatrixTransform(SparseMatrix::Diagonal({3, 3, 3}), source, 8, source)
                .CommonFactor(source, 8),
            3);
  // A sum: one diagonal of ones, and blocks of one position.
  SparseMatrix ones;
  ones.column_count = 3;
  for (int column : {0, 1, 2}) ones.Append(column, 1);
  ones.EndRow();
  const ElementPlacement one = {.period = 1, .positions = {0}, .grid = {}};
  EXPECT_TRUE(MakeMatrixTransform(ones, source, 8, one).IsRotation(source, 8));
}

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

TEST(ElementPlacementTest, StridesAndPeriods) {
  const ElementPlacement compact = CompactPlacement({13});
  EXPECT_EQ(compact.period, 16);
  EXPECT_EQ(compact.Stride(), 1);
  const ElementPlacement strided = {.period = 64, .positions = {0, 6, 12}, .grid = {}};
  EXPECT_EQ(strided.Stride(), 6);
  EXPECT_EQ(strided.LeastPeriod(), 8);
  const ElementPlacement odd = {.period = 64, .positions = {0, 32, 33}, .grid = {}};
  EXPECT_EQ(odd.Stride(), 0);
  EXPECT_EQ(odd.LeastPeriod(), 64);
}

TEST(ElementPlacementTest, ChannelsFillTheGapsOfStrides) {
  const ElementPlacement image = CompactPlacement({1, 28, 28});
  const std::vector<ElementPlacement> spread = ImagePlacements({4, 12, 12}, image, {2, 2}, 1024);
  ASSERT_FALSE(spread.empty());
  // Pixel (y, x) of channel c: (2y + c / 2, 2x + c mod 2).
  const auto at = [&](int c, int y, int x) { return spread[0].positions[(c * 12 + y) * 12 + x]; };
  EXPECT_EQ(at(0, 3, 5), 6 * 28 + 10);
  EXPECT_EQ(at(1, 3, 5), 6 * 28 + 11);
  EXPECT_EQ(at(2, 3, 5), 7 * 28 + 10);
  EXPECT_EQ(at(3, 11, 11), 23 * 28 + 23);
  EXPECT_EQ(spread[0].period, 1024);
  for (const ElementPlacement& placement : spread) {
    std::vector<int32_t> positions = placement.positions;
    std::sort(positions.begin(), positions.end());
    EXPECT_EQ(std::adjacent_find(positions.begin(), positions.end()), positions.end());
    EXPECT_LT(positions.back(), placement.period);
  }
  // Four planes of their own need more room.
  EXPECT_EQ(spread.size(), 1u);
  EXPECT_GT(ImagePlacements({4, 12, 12}, image, {2, 2}, 4096).size(), 1u);
}

}  // namespace
}  // namespace cipherd::planning
