// Programs in few words, for tests.
//
//   SpecBuilder spec(SmallContext());
//   spec.Input("x");
//   spec.Add({.name = "y", .kind = OperationKind::kSquare, .a = "x"});
//   spec.Output("y");
//   CheckProgram(spec.Build(), spec.constants(), SecurityPolicy::kAllowInsecure)
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "core/ckks/context_parameters.h"
#include "core/programs/constants.h"
#include "core/programs/program_spec.h"
#include "core/value/tensor.h"

namespace cipherd::programs {

// N = 256, S = 128, three rescalings of 40 bits over a base of 50 bits, scale 2^40, two digits.
inline ckks::ContextParameters SmallContext() {
  return *ckks::MakeContextParameters({.log_n = 8,
                                       .base_prime_bits = 50,
                                       .depth_prime_bits = 40,
                                       .max_depth = 3,
                                       .p_prime_bits = 50,
                                       .p_prime_count = 2,
                                       .digit_count = 2,
                                       .default_scale = 0},
                                      ckks::SecurityPolicy::kAllowInsecure);
}

template <typename T>
value::Tensor HostTensor(value::DType dtype, std::vector<int64_t> shape,
                         const std::vector<T>& numbers) {
  value::Tensor tensor = *value::Tensor::AllocateHost(dtype, std::move(shape));
  if (!numbers.empty()) std::memcpy(tensor.data(), numbers.data(), numbers.size() * sizeof(T));
  return tensor;
}

// float64 [length].
inline value::Tensor Slots(const std::vector<double>& numbers) {
  return HostTensor(value::DType::kFloat64, {static_cast<int64_t>(numbers.size())}, numbers);
}

// int64 [count].
inline value::Tensor Offsets(const std::vector<int64_t>& numbers) {
  return HostTensor(value::DType::kInt64, {static_cast<int64_t>(numbers.size())}, numbers);
}

class SpecBuilder {
 public:
  explicit SpecBuilder(ckks::ContextParameters context) {
    spec_.name = "test";
    spec_.context = std::move(context);
  }

  SpecBuilder& Input(std::string name, int depth = 0, double scale = 0) {
    spec_.inputs.push_back({std::move(name), depth, scale, {}, ""});
    return *this;
  }
  SpecBuilder& Add(Operation operation) {
    spec_.operations.push_back(std::move(operation));
    return *this;
  }
  // An output of the same name as its edge.
  SpecBuilder& Output(const std::string& edge, double magnitude_bound = 0) {
    spec_.outputs.push_back({edge, edge, {}, "", magnitude_bound});
    return *this;
  }
  SpecBuilder& Constant(std::string name, value::Tensor tensor) {
    constants_[std::move(name)] = std::move(tensor);
    return *this;
  }

  ProgramSpec& spec() { return spec_; }
  const ProgramSpec& Build() const { return spec_; }
  const Constants& constants() const { return constants_; }

 private:
  ProgramSpec spec_;
  Constants constants_;
};

}  // namespace cipherd::programs
