// Access to ciphertexts and plaintexts in host memory, limb by limb. Internal to the layer.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "core/ckks/context_parameters.h"
#include "core/value/tensor.h"

namespace cipherd::secret::internal {

// The tensor is contiguous uint64 host memory, [<`leading` axes>, batch…, active limbs, N] at
// `depth`, and the depth is one of the context. InvalidArgument naming `role` otherwise.
absl::Status CheckHostOperand(const value::Tensor& data, std::string_view role, size_t leading,
                              int depth, const ckks::ContextParameters& parameters);

// The limbs of a contiguous tensor [polynomial…, limb, N], polynomials counted flat.
class Limbs {
 public:
  explicit Limbs(const value::Tensor& data)
      : words_(data.data_as<uint64_t>()),
        n_(data.shape().back()),
        limb_count_(data.shape()[data.shape().size() - 2]) {}

  std::span<uint64_t> operator()(int64_t polynomial, int64_t limb) const {
    return {words_ + (polynomial * limb_count_ + limb) * n_, static_cast<size_t>(n_)};
  }

 private:
  uint64_t* words_;
  int64_t n_;
  int64_t limb_count_;
};

}  // namespace cipherd::secret::internal
