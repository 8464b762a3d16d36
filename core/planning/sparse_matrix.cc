#include "core/planning/sparse_matrix.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace cipherd::planning {
namespace {

// Collects one row after another from entries of any order, equal columns added up.
class RowMaker {
 public:
  explicit RowMaker(int64_t column_count)
      : sums_(column_count, 0.0), is_taken_(column_count, false) {}

  void Add(int32_t column, double value) {
    if (!is_taken_[column]) {
      is_taken_[column] = true;
      columns_.push_back(column);
    }
    sums_[column] += value;
  }

  void FinishRow(SparseMatrix& matrix) {
    std::sort(columns_.begin(), columns_.end());
    for (int32_t column : columns_) {
      matrix.Append(column, sums_[column]);
      sums_[column] = 0;
      is_taken_[column] = false;
    }
    columns_.clear();
    matrix.EndRow();
  }

 private:
  std::vector<double> sums_;
  std::vector<bool> is_taken_;
  std::vector<int32_t> columns_;
};

absl::Status CheckEntries(const SparseMatrix& matrix) {
  if (matrix.entry_count() <= SparseMatrix::kMaxEntries) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("expected a matrix of at most ", SparseMatrix::kMaxEntries,
                   " entries, got one of more, ", matrix.column_count, " columns wide"));
}

}  // namespace

SparseMatrix SparseMatrix::Identity(int64_t count) {
  return Diagonal(std::vector<double>(count, 1.0));
}

SparseMatrix SparseMatrix::Diagonal(std::vector<double> values) {
  SparseMatrix matrix;
  matrix.column_count = static_cast<int64_t>(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    matrix.Append(i, values[i]);
    matrix.EndRow();
  }
  return matrix;
}

SparseMatrix SparseMatrix::Selection(const std::vector<int64_t>& columns, int64_t column_count) {
  SparseMatrix matrix;
  matrix.column_count = column_count;
  for (int64_t column : columns) {
    matrix.Append(column, 1);
    matrix.EndRow();
  }
  return matrix;
}

bool SparseMatrix::IsDiagonal() const {
  if (row_count != column_count || !IsSelection()) return false;
  for (int64_t row = 0; row < row_count; ++row) {
    for (int64_t i = row_begin[row]; i < row_begin[row + 1]; ++i) {
      if (columns[i] != row) return false;
    }
  }
  return true;
}

bool SparseMatrix::IsScalar(double value) const {
  return IsDiagonal() && entry_count() == row_count &&
         std::all_of(values.begin(), values.end(), [=](double entry) { return entry == value; });
}

bool SparseMatrix::IsSelection() const {
  for (int64_t row = 0; row < row_count; ++row) {
    if (row_begin[row + 1] - row_begin[row] > 1) return false;
  }
  return true;
}

void SparseMatrix::ScaleRows(const std::vector<double>& factors) {
  for (int64_t row = 0; row < row_count; ++row) {
    for (int64_t i = row_begin[row]; i < row_begin[row + 1]; ++i) values[i] *= factors[row];
  }
}

void SparseMatrix::MultiplyAdd(const std::vector<double>& vector, std::vector<double>& sum) const {
  for (int64_t row = 0; row < row_count; ++row) {
    for (int64_t i = row_begin[row]; i < row_begin[row + 1]; ++i) {
      sum[row] += values[i] * vector[columns[i]];
    }
  }
}

int64_t ProductCost(const SparseMatrix& outer, const SparseMatrix& inner) {
  int64_t cost = 0;
  for (int32_t column : outer.columns) {
    cost += inner.row_begin[column + 1] - inner.row_begin[column];
  }
  return cost;
}

absl::StatusOr<SparseMatrix> Product(const SparseMatrix& outer, const SparseMatrix& inner) {
  SparseMatrix product;
  product.column_count = inner.column_count;
  RowMaker row_maker(inner.column_count);
  for (int64_t row = 0; row < outer.row_count; ++row) {
    for (int64_t i = outer.row_begin[row]; i < outer.row_begin[row + 1]; ++i) {
      const int32_t middle = outer.columns[i];
      for (int64_t j = inner.row_begin[middle]; j < inner.row_begin[middle + 1]; ++j) {
        row_maker.Add(inner.columns[j], outer.values[i] * inner.values[j]);
      }
    }
    row_maker.FinishRow(product);
    if (absl::Status status = CheckEntries(product); !status.ok()) return status;
  }
  return product;
}

absl::StatusOr<SparseMatrix> Sum(const SparseMatrix& a, const SparseMatrix& b, double factor) {
  SparseMatrix sum;
  sum.column_count = a.column_count;
  RowMaker row_maker(a.column_count);
  for (int64_t row = 0; row < a.row_count; ++row) {
    for (int64_t i = a.row_begin[row]; i < a.row_begin[row + 1]; ++i) {
      row_maker.Add(a.columns[i], a.values[i]);
    }
    for (int64_t i = b.row_begin[row]; i < b.row_begin[row + 1]; ++i) {
      row_maker.Add(b.columns[i], factor * b.values[i]);
    }
    row_maker.FinishRow(sum);
    if (absl::Status status = CheckEntries(sum); !status.ok()) return status;
  }
  return sum;
}

}  // namespace cipherd::planning
