#include "core/planning/matrix_transform.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

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

}  // namespace
}  // namespace cipherd::planning
