// Models with random constants in few words, for tests.
//
//   RandomModel model(/*seed=*/1);
//   model.Input("x", {1, 8, 8});
//   model.Conv("c", "x", {4, 1, 3, 3}, {.strides = {2, 2}});
//   model.Square("s", "c");
//   model.Linear("y", "s", 10);
//   model.Output("y");
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/checked_math.h"
#include "core/planning/model.h"
#include "core/planning/model_rules.h"
#include "core/planning/model_twin.h"
#include "core/planning/tensor_shapes.h"

namespace cipherd::planning {

inline value::Tensor TensorOf(std::vector<int64_t> shape, const std::vector<double>& numbers) {
  value::Tensor tensor = *value::Tensor::AllocateHost(value::DType::kFloat64, std::move(shape));
  std::memcpy(tensor.data(), numbers.data(), numbers.size() * sizeof(double));
  return tensor;
}

inline value::Tensor TensorOf(std::vector<int64_t> shape, const std::vector<int64_t>& numbers) {
  value::Tensor tensor = *value::Tensor::AllocateHost(value::DType::kInt64, std::move(shape));
  std::memcpy(tensor.data(), numbers.data(), numbers.size() * sizeof(int64_t));
  return tensor;
}

class RandomModel {
 public:
  explicit RandomModel(uint32_t seed) : random_(seed) { model_.name = "random"; }

  Model& model() { return model_; }
  std::mt19937& random() { return random_; }

  void Input(const std::string& name, Shape shape) {
    shapes_[name] = shape;
    model_.inputs.push_back({.name = name, .shape = std::move(shape)});
  }
  void Output(const std::string& edge) {
    model_.outputs.push_back({absl::StrCat("out_", edge), edge});
  }
  void Add(ModelOperation operation) {
    shapes_[operation.name] = *internal::ApplyShapeRule(operation, shapes_, model_.constants);
    model_.operations.push_back(std::move(operation));
  }
  const Shape& shape(const std::string& edge) const { return shapes_.at(edge); }

  // Weights such that results are about as large as operands.
  void Linear(const std::string& name, const std::string& a, int64_t out, bool has_bias = true) {
    const int64_t in = *ElementCount(shapes_.at(a));
    Constant(name + ".w", {out, in}, 1.5 / std::sqrt(in));
    if (has_bias) Constant(name + ".b", {out}, 0.5);
    Add({.name = name,
         .kind = ModelKind::kLinear,
         .a = a,
         .weight = name + ".w",
         .bias = has_bias ? name + ".b" : ""});
  }
  void Conv(const std::string& name, const std::string& a, Shape weight, ModelOperation fields) {
    const double taps = static_cast<double>(weight[1] * weight[2] * weight[3]);
    Constant(name + ".b", {weight[0]}, 0.5);
    Constant(name + ".w", std::move(weight), 1.5 / std::sqrt(taps));
    fields.name = name;
    fields.kind = ModelKind::kConv2d;
    fields.a = a;
    fields.weight = name + ".w";
    fields.bias = name + ".b";
    Add(std::move(fields));
  }
  void Pool(const std::string& name, const std::string& a, std::array<int64_t, 2> kernel,
            ModelOperation fields) {
    fields.name = name;
    fields.kind = ModelKind::kAveragePool2d;
    fields.a = a;
    fields.kernel = kernel;
    Add(std::move(fields));
  }
  void Square(const std::string& name, const std::string& a) {
    Add({.name = name, .kind = ModelKind::kSquare, .a = a});
  }
  void Binary(ModelKind kind, const std::string& name, const std::string& a, const std::string& b) {
    Add({.name = name, .kind = kind, .a = a, .b = b});
  }
  void WithConstant(ModelKind kind, const std::string& name, const std::string& a, Shape shape) {
    Constant(name + ".c", std::move(shape), 1);
    Add({.name = name, .kind = kind, .a = a, .constant = name + ".c"});
  }

  // Uniform in [-reach, reach].
  void Constant(const std::string& name, Shape shape, double reach) {
    std::uniform_real_distribution<double> uniform(-reach, reach);
    // May be more than an edge can have.
    std::vector<double> numbers(*base::CheckedElementCount(shape));
    for (double& number : numbers) number = uniform(random_);
    model_.constants[name] = TensorOf(std::move(shape), numbers);
  }

  // Within the bounds of the inputs.
  TensorBatch Samples(int count) {
    TensorBatch samples;
    for (const ModelInput& input : model_.inputs) {
      std::uniform_real_distribution<double> uniform(input.lower, input.upper);
      auto& items = samples[input.name];
      items.assign(count, std::vector<double>(*ElementCount(input.shape)));
      for (auto& item : items) {
        for (double& number : item) number = uniform(random_);
      }
    }
    return samples;
  }

 private:
  Model model_;
  ModelShapes shapes_;
  std::mt19937 random_;
};

}  // namespace cipherd::planning
