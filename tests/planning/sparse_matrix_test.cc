#include "core/planning/sparse_matrix.h"

#include <random>
#include <vector>

#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::planning {
namespace {

using Rows = std::vector<std::vector<double>>;

SparseMatrix RandomMatrix(int64_t rows, int64_t columns, std::mt19937& random) {
  SparseMatrix matrix;
  matrix.column_count = columns;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      if (random() % 3 == 0) matrix.Append(column, static_cast<double>(random() % 19) - 9);
    }
    matrix.EndRow();
  }
  return matrix;
}

Rows Dense(const SparseMatrix& matrix) {
  Rows rows(matrix.row_count, std::vector<double>(matrix.column_count, 0.0));
  for (int64_t row = 0; row < matrix.row_count; ++row) {
    for (int64_t i = matrix.row_begin[row]; i < matrix.row_begin[row + 1]; ++i) {
      rows[row][matrix.columns[i]] += matrix.values[i];
    }
  }
  return rows;
}

TEST(SparseMatrixTest, ProductsAndSumsAreThoseOfDenseMatrices) {
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    const int64_t m = 1 + random() % 9, k = 1 + random() % 9, n = 1 + random() % 9;
    const SparseMatrix a = RandomMatrix(m, k, random), b = RandomMatrix(k, n, random);
    const SparseMatrix c = RandomMatrix(m, k, random);
    ASSERT_OK_AND_ASSIGN(const SparseMatrix product, Product(a, b));
    ASSERT_OK_AND_ASSIGN(const SparseMatrix sum, Sum(a, c, -2));
    const Rows rows_a = Dense(a), rows_b = Dense(b), rows_c = Dense(c);
    Rows expected(m, std::vector<double>(n, 0.0)), expected_sum = rows_a;
    int64_t cost = 0;
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t l = 0; l < k; ++l) {
        expected_sum[i][l] -= 2 * rows_c[i][l];
        for (int64_t j = 0; j < n; ++j) expected[i][j] += rows_a[i][l] * rows_b[l][j];
      }
      for (int64_t e = a.row_begin[i]; e < a.row_begin[i + 1]; ++e) {
        cost += b.row_begin[a.columns[e] + 1] - b.row_begin[a.columns[e]];
      }
    }
    EXPECT_EQ(Dense(product), expected);
    EXPECT_EQ(Dense(sum), expected_sum);
    EXPECT_EQ(ProductCost(a, b), cost);

    std::vector<double> vector(k, 0.0), result(m, 1.0), reference(m, 1.0);
    for (double& number : vector) number = static_cast<double>(random() % 7);
    a.MultiplyAdd(vector, result);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t l = 0; l < k; ++l) reference[i] += rows_a[i][l] * vector[l];
    }
    EXPECT_EQ(result, reference);
  }
}

TEST(SparseMatrixTest, KnowsWhatItIs) {
  const SparseMatrix identity = SparseMatrix::Identity(3);
  EXPECT_TRUE(identity.IsScalar(1));
  EXPECT_FALSE(identity.IsScalar(-1));
  SparseMatrix scaled = identity;
  scaled.ScaleRows({-1, -1, 2});
  EXPECT_TRUE(scaled.IsDiagonal());
  EXPECT_FALSE(scaled.IsScalar(-1));
  const SparseMatrix turned = SparseMatrix::Selection({1, 2, 0}, 3);
  EXPECT_TRUE(turned.IsSelection());
  EXPECT_FALSE(turned.IsDiagonal());
  EXPECT_FALSE(SparseMatrix::Selection({0, 1}, 3).IsDiagonal());
  std::mt19937 random(2);
  EXPECT_FALSE(RandomMatrix(5, 20, random).IsSelection());
}

}  // namespace
}  // namespace cipherd::planning
