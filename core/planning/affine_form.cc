#include "core/planning/affine_form.h"

#include <algorithm>
#include <utility>

#include "core/base/status_macros.h"

namespace cipherd::planning {

bool AffineForm::IsSelection() const {
  return std::all_of(terms.begin(), terms.end(),
                     [](const Term& term) { return term.matrix.IsSelection(); });
}

bool AffineForm::IsMultiplied() const {
  return std::none_of(terms.begin(), terms.end(), [](const Term& term) {
    return term.matrix.IsScalar(1) || term.matrix.IsScalar(-1);
  });
}

AffineForm NodeForm(int node, int64_t count) {
  AffineForm form;
  form.terms.push_back({node, SparseMatrix::Identity(count)});
  form.constant.assign(count, 0.0);
  form.strides = {1, 1};
  return form;
}

int NodeOf(const AffineForm& form) {
  const bool is_node =
      form.terms.size() == 1 && form.terms[0].matrix.IsScalar(1) &&
      std::all_of(form.constant.begin(), form.constant.end(), [](double c) { return c == 0; });
  return is_node ? form.terms[0].node : -1;
}

absl::StatusOr<AffineForm> Composed(const LinearMap& map, const AffineForm& form) {
  AffineForm result;
  result.constant = map.constant;
  map.matrix.MultiplyAdd(form.constant, result.constant);
  for (const AffineForm::Term& term : form.terms) {
    CIPHERD_ASSIGN_OR_RETURN(SparseMatrix product, Product(map.matrix, term.matrix));
    result.terms.push_back({term.node, std::move(product)});
  }
  if (map.strides.has_value() && form.strides.has_value()) {
    result.strides = {(*map.strides)[0] * (*form.strides)[0],
                      (*map.strides)[1] * (*form.strides)[1]};
  }
  return result;
}

absl::StatusOr<AffineForm> Added(const AffineForm& a, const AffineForm& b, double factor) {
  AffineForm sum = a;
  for (size_t i = 0; i < sum.constant.size(); ++i) sum.constant[i] += factor * b.constant[i];
  for (const AffineForm::Term& term : b.terms) {
    const auto same =
        std::find_if(sum.terms.begin(), sum.terms.end(),
                     [&](const AffineForm::Term& other) { return other.node == term.node; });
    if (same == sum.terms.end()) {
      sum.terms.push_back(term);
      sum.terms.back().matrix.ScaleRows(std::vector<double>(sum.constant.size(), factor));
    } else {
      CIPHERD_ASSIGN_OR_RETURN(same->matrix, Sum(same->matrix, term.matrix, factor));
    }
  }
  if (sum.strides != b.strides) sum.strides.reset();
  return sum;
}

}  // namespace cipherd::planning
