// The model of deploy/programs/fashion_mlp in float64: what the encrypted evaluation is compared
// with.
//
//   logits = W2 (W1 x + b1)^2 + b2,  the square taken element by element
//
// It reads the plain weights (w1 [hidden, pixels], b1, w2 [logits, hidden], b2), not the diagonals
// that the program computes with, so that a fault of the packing shows too. Immutable, thread-safe.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace cipherd::client {

class PolynomialModel {
 public:
  // NotFound or InvalidArgument, naming file and tensor.
  static absl::StatusOr<PolynomialModel> FromSafetensors(const std::string& path);

  size_t pixel_count() const { return w1_.front().size(); }
  size_t logit_count() const { return w2_.size(); }

  // Requires pixel_count() pixels in [0, 1].
  std::vector<double> Logits(std::span<const double> pixels) const;

 private:
  using Matrix = std::vector<std::vector<double>>;
  PolynomialModel(Matrix w1, std::vector<double> b1, Matrix w2, std::vector<double> b2);

  Matrix w1_;
  std::vector<double> b1_;
  Matrix w2_;
  std::vector<double> b2_;
};

// Index of the largest; the first of equals. Requires one at least.
size_t ArgMax(std::span<const double> values);

}  // namespace cipherd::client
