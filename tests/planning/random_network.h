// Models of random operations, for tests of what holds for all of them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/planning/random_model.h"

namespace cipherd::planning {

inline Polynomial RandomPolynomial(PolynomialBasis basis, int degree, double lower, double upper,
                                   std::mt19937& random) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  Polynomial polynomial = {basis, {}, lower, upper};
  for (int k = 0; k <= degree; ++k) polynomial.coefficients.push_back(uniform(random));
  return polynomial;
}

// Ten operations or more on an image x and a vector z; what nothing reads are outputs.
inline RandomModel RandomNetwork(uint32_t seed) {
  RandomModel model(seed);
  const auto pick = [&](int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(model.random());
  };
  model.Input("x", {pick(1, 3), pick(3, 8), pick(3, 8)});
  model.Input("z", {pick(1, 20)});
  std::vector<std::string> edges = {"x", "z"};
  std::set<std::string> unread = {"x", "z"};
  for (int i = 0; i < 8; ++i) {
    const std::string name = absl::StrCat("e", i);
    const std::string a = i < 2 ? edges[i] : edges[pick(0, edges.size() - 1)];
    const Shape shape = model.shape(a);
    unread.erase(a);
    switch (pick(0, 8)) {
      case 0:
        if (shape.size() == 3) {
          const int64_t kernel = pick(1, std::min<int64_t>({3, shape[1], shape[2]}));
          model.Conv(name, a, {pick(1, 4), shape[0], kernel, kernel},
                     {.strides = {pick(1, 2), pick(1, 2)},
                      .pads = {pick(0, 1), pick(0, 1), pick(0, 1), pick(0, 1)}});
          break;
        }
        [[fallthrough]];
      case 1:
        model.Linear(name, a, pick(1, 20), pick(0, 1) == 1);
        break;
      case 2:
        model.Square(name, a);
        break;
      case 3: {
        std::string b = a;
        for (const std::string& other : edges) {
          if (model.shape(other) == shape) b = other;
        }
        unread.erase(b);
        model.Binary(pick(0, 1) == 1 ? ModelKind::kMultiply : ModelKind::kAdd, name, a, b);
        break;
      }
      case 4: {
        const std::string b = absl::StrCat("l", i);
        model.Linear(b, a, *ElementCount(shape));
        const std::string c = absl::StrCat("r", i);
        model.Add({.name = c, .kind = ModelKind::kReshape, .a = b, .shape = shape});
        model.Binary(ModelKind::kSubtract, name, a, c);
        break;
      }
      case 5:
        model.Add({.name = name,
                   .kind = ModelKind::kPolynomial,
                   .a = a,
                   .polynomial = RandomPolynomial(
                       pick(0, 1) == 1 ? PolynomialBasis::kPower : PolynomialBasis::kChebyshev,
                       pick(1, 4), -2, 2, model.random())});
        break;
      case 6:
        model.WithConstant(ModelKind::kMultiplyConstant, name, a, {1});
        break;
      case 7:
        model.WithConstant(ModelKind::kAddConstant, name, a, shape);
        break;
      case 8:
        model.Add({.name = name, .kind = ModelKind::kSum, .a = a, .keep_axes = true});
        break;
    }
    edges.push_back(name);
    unread.insert(name);
  }
  for (const std::string& name : unread) model.Output(name);
  return model;
}

}  // namespace cipherd::planning
