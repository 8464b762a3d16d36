#include "core/planning/matrix_transform.h"

#include <algorithm>

namespace cipherd::planning {

double MatrixTransform::CommonFactor(const ElementPlacement& source, int64_t input_period) const {
  if (offsets.size() != 1) return 0;
  // Each element of the source stands length / input_period times in it, and goes to one position.
  const int64_t moved_count =
      static_cast<int64_t>(source.positions.size()) * (length / input_period);
  double factor = 0;
  int64_t count = 0;
  for (double number : diagonals) {
    if (number == 0) continue;
    if (factor != 0 && number != factor) return 0;
    factor = number;
    ++count;
  }
  return count == moved_count ? factor : 0;
}

bool MatrixTransform::IsRotation(const ElementPlacement& source, int64_t input_period) const {
  return CommonFactor(source, input_period) == 1;
}

MatrixTransform MakeMatrixTransform(const SparseMatrix& matrix, const ElementPlacement& source,
                                    int64_t input_period, const ElementPlacement& target) {
  MatrixTransform transform;
  transform.length = std::max(input_period, target.period);
  const int64_t modulus = std::min(input_period, target.period);
  const auto offset_of = [&](int64_t row, int64_t entry) -> int64_t {
    return (source.positions[matrix.columns[entry]] - target.positions[row]) & (modulus - 1);
  };
  const auto for_each_entry = [&](auto visit) {
    for (int64_t row = 0; row < matrix.row_count; ++row) {
      for (int64_t i = matrix.row_begin[row]; i < matrix.row_begin[row + 1]; ++i) {
        if (matrix.values[i] != 0) visit(row, i);
      }
    }
  };

  // By offset: the row of its diagonal, or -1.
  std::vector<int64_t> diagonal_of(modulus, -1);
  for_each_entry([&](int64_t row, int64_t i) { diagonal_of[offset_of(row, i)] = 0; });
  for (int64_t offset = 0; offset < modulus; ++offset) {
    if (diagonal_of[offset] < 0) continue;
    diagonal_of[offset] = static_cast<int64_t>(transform.offsets.size());
    transform.offsets.push_back(offset);
  }
  if (transform.offsets.empty()) transform.offsets.push_back(0);

  transform.diagonals.assign(transform.offsets.size() * transform.length, 0.0);
  for_each_entry([&](int64_t row, int64_t i) {
    const int64_t offset = offset_of(row, i);
    // With blocks to be added, the block where the element stands at that offset.
    const int64_t position = target.period > input_period
                                 ? target.positions[row]
                                 : source.positions[matrix.columns[i]] - offset;
    transform
        .diagonals[diagonal_of[offset] * transform.length + (position & (transform.length - 1))] +=
        matrix.values[i];
  });
  return transform;
}

}  // namespace cipherd::planning
