// A sparse matrix by rows: what a linear layer does to a vector.
//
//   SparseMatrix half = SparseMatrix::Diagonal({0.5, 0.5});
//   CIPHERD_ASSIGN_OR_RETURN(SparseMatrix both, Product(outer, inner));   // outer · inner
//
// A plain value. An entry may be an explicit zero: a weight that happens to be 0.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"

namespace cipherd::planning {

struct SparseMatrix {
  // Most entries that a matrix may have: 1.5 GiB.
  static constexpr int64_t kMaxEntries = int64_t{1} << 27;

  int64_t row_count = 0;
  int64_t column_count = 0;
  // The entries of row r are [row_begin[r], row_begin[r + 1]); columns of a row are distinct.
  std::vector<int64_t> row_begin = {0};
  std::vector<int32_t> columns;
  std::vector<double> values;

  static SparseMatrix Identity(int64_t count);
  static SparseMatrix Diagonal(std::vector<double> values);
  // One entry a row: result[r] = a[columns[r]].
  static SparseMatrix Selection(const std::vector<int64_t>& columns, int64_t column_count);

  int64_t entry_count() const { return static_cast<int64_t>(columns.size()); }
  // Appends to the row that is being made; EndRow begins the next.
  void Append(int64_t column, double value) {
    columns.push_back(static_cast<int32_t>(column));
    values.push_back(value);
  }
  void EndRow() {
    row_begin.push_back(entry_count());
    ++row_count;
  }

  // Square, and no entry off the diagonal.
  bool IsDiagonal() const;
  // IsDiagonal, and every number on the diagonal is `value`.
  bool IsScalar(double value) const;
  // At most one entry in each row.
  bool IsSelection() const;

  // Row r times factors[r].
  void ScaleRows(const std::vector<double>& factors);
  // Matrix times vector, added to `sum`.
  void MultiplyAdd(const std::vector<double>& vector, std::vector<double>& sum) const;
};

// Multiplications that Product(outer, inner) takes.
int64_t ProductCost(const SparseMatrix& outer, const SparseMatrix& inner);
// outer · inner. Requires outer.column_count == inner.row_count. ResourceExhausted above
// kMaxEntries.
absl::StatusOr<SparseMatrix> Product(const SparseMatrix& outer, const SparseMatrix& inner);
// a + factor · b. Requires equal sizes.
absl::StatusOr<SparseMatrix> Sum(const SparseMatrix& a, const SparseMatrix& b, double factor);

}  // namespace cipherd::planning
