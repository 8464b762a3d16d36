#include "client/demo/polynomial_model.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/programs/safetensors.h"

namespace cipherd::client {
namespace {

using Matrix = std::vector<std::vector<double>>;

constexpr int64_t kMaxBytes = int64_t{256} << 20;

double ElementAt(const value::Tensor& tensor, int64_t index) {
  return tensor.dtype() == value::DType::kFloat32 ? tensor.data_as<float>()[index]
                                                  : tensor.data_as<double>()[index];
}

// A tensor of floats as rows; a vector is one row.
absl::StatusOr<Matrix> ReadMatrix(const programs::Constants& tensors, const std::string& name,
                                  size_t rank, const std::string& path) {
  const auto found = tensors.find(name);
  if (found == tensors.end()) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "': has no tensor '", name, "'"));
  }
  const value::Tensor& tensor = found->second;
  const bool is_float =
      tensor.dtype() == value::DType::kFloat32 || tensor.dtype() == value::DType::kFloat64;
  if (!is_float || tensor.shape().size() != rank || tensor.element_count() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "': '", name, "': expected floats of ", rank, " dimensions"));
  }
  const int64_t columns = tensor.shape().back();
  Matrix rows(tensor.element_count() / columns, std::vector<double>(columns));
  for (int64_t i = 0; i < tensor.element_count(); ++i) {
    rows[i / columns][i % columns] = ElementAt(tensor, i);
  }
  return rows;
}

std::vector<double> AffineMap(const Matrix& w, const std::vector<double>& b,
                              std::span<const double> x) {
  std::vector<double> y = b;
  for (size_t i = 0; i < w.size(); ++i)
    y[i] += std::inner_product(x.begin(), x.end(), w[i].begin(), 0.0);
  return y;
}

}  // namespace

PolynomialModel::PolynomialModel(Matrix w1, std::vector<double> b1, Matrix w2,
                                 std::vector<double> b2)
    : w1_(std::move(w1)), b1_(std::move(b1)), w2_(std::move(w2)), b2_(std::move(b2)) {}

absl::StatusOr<PolynomialModel> PolynomialModel::FromSafetensors(const std::string& path) {
  CIPHERD_ASSIGN_OR_RETURN(const programs::Constants tensors,
                           programs::ReadSafetensors(path, kMaxBytes));
  CIPHERD_ASSIGN_OR_RETURN(Matrix w1, ReadMatrix(tensors, "w1", 2, path));
  CIPHERD_ASSIGN_OR_RETURN(Matrix b1, ReadMatrix(tensors, "b1", 1, path));
  CIPHERD_ASSIGN_OR_RETURN(Matrix w2, ReadMatrix(tensors, "w2", 2, path));
  CIPHERD_ASSIGN_OR_RETURN(Matrix b2, ReadMatrix(tensors, "b2", 1, path));
  if (b1[0].size() != w1.size() || w2[0].size() != w1.size() || b2[0].size() != w2.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", path, "': shapes of w1, b1, w2, b2 do not fit"));
  }
  return PolynomialModel(std::move(w1), std::move(b1[0]), std::move(w2), std::move(b2[0]));
}

std::vector<double> PolynomialModel::Logits(std::span<const double> pixels) const {
  std::vector<double> hidden = AffineMap(w1_, b1_, pixels);
  for (double& unit : hidden) unit *= unit;
  return AffineMap(w2_, b2_, hidden);
}

size_t ArgMax(std::span<const double> values) {
  return std::max_element(values.begin(), values.end()) - values.begin();
}

}  // namespace cipherd::client
