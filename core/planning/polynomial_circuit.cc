#include "core/planning/polynomial_circuit.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace cipherd::planning {
namespace {

template <typename... Parts>
absl::Status Refuse(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat("polynomial: ", parts...));
}

// Without zeros at the end, but for one.
std::vector<double> Trimmed(std::vector<double> coefficients) {
  while (coefficients.size() > 1 && coefficients.back() == 0) coefficients.pop_back();
  if (coefficients.empty()) coefficients.push_back(0);
  return coefficients;
}

// The coefficients to evaluate with: trimmed, and of degree 1 those in x itself.
absl::StatusOr<std::vector<double>> CheckedCoefficients(const Polynomial& polynomial) {
  std::vector<double> coefficients = Trimmed(polynomial.coefficients);
  const size_t degree = coefficients.size() - 1;
  if (degree > static_cast<size_t>(kMaxPolynomialDegree)) {
    return Refuse("expected a degree of at most ", kMaxPolynomialDegree, ", got ", degree);
  }
  if (polynomial.basis == PolynomialBasis::kChebyshev) {
    const IntervalMap map = MapToUnitInterval(polynomial);
    if (!(polynomial.lower < polynomial.upper) || !std::isfinite(map.scale) || map.scale == 0 ||
        !std::isfinite(map.shift)) {
      return Refuse("expected an interval, got [", polynomial.lower, ", ", polynomial.upper, "]");
    }
    if (degree == 1) {
      // The map becomes part of the coefficients.
      coefficients =
          Trimmed({coefficients[0] + coefficients[1] * map.shift, coefficients[1] * map.scale});
    }
  }
  for (const double coefficient : coefficients) {
    if (!std::isfinite(coefficient)) {
      return Refuse("expected finite coefficients, got ", coefficient);
    }
  }
  return coefficients;
}

// Whether only coefficients of even index are there, beyond the constant.
bool IsEven(const std::vector<double>& coefficients) {
  if (coefficients.size() < 3) return false;
  for (size_t i = 1; i < coefficients.size(); i += 2) {
    if (coefficients[i] != 0) return false;
  }
  return true;
}

// Appends what a split says.
class Emitter {
 public:
  // `x` is B_1.
  Emitter(CircuitBuilder& builder, PolynomialBasis basis, std::string_view x, std::string base)
      : builder_(builder), basis_(basis), base_(std::move(base)) {
    elements_[1] = std::string(x);
  }

  // B_{2 index} of x is B_index of B_2.
  void SubstituteSecondElement() {
    argument_factor_ *= 2;
    elements_[1] = MakeElement({.index = 2, .left = 1, .right = 1, .depth = 1}, argument_factor_);
  }

  std::string Emit(const PolynomialSplit& split) {
    for (const BasisElement& element : split.elements) {
      elements_[element.index] = MakeElement(element, element.index * argument_factor_);
    }
    return EmitSum(split.sum, base_);
  }

  // `edge` of zeros.
  std::string EmitConstant(double constant) {
    const std::string& x = elements_.at(1);
    if (constant == 0) return builder_.Subtract(x, x, base_);
    return builder_.AddPlain(builder_.Subtract(x, x, PartName()), constant, base_);
  }

 private:
  struct Summand {
    std::string edge;
    bool is_negative;
  };

  std::string PartName() const { return absl::StrCat(base_, "_part"); }

  // `number` is the element's index as one of x.
  std::string MakeElement(const BasisElement& element, int number) {
    const bool is_power = basis_ == PolynomialBasis::kPower;
    const std::string name = absl::StrCat(base_, is_power ? "_x" : "_t", number);
    const std::string product_name = is_power ? name : absl::StrCat(name, "_half");
    const std::string& left = elements_.at(element.left);
    const std::string product =
        element.left == element.right
            ? builder_.Square(left, product_name)
            : builder_.Multiply(left, elements_.at(element.right), product_name);
    if (is_power) return product;
    const std::string twice = builder_.Add(product, product, absl::StrCat(name, "_sum"));
    if (element.left == element.right) return builder_.AddPlain(twice, -1.0, name);
    return builder_.Subtract(twice, elements_.at(element.left - element.right), name);
  }

  // The summands of one sum are at one depth when they are added: the planner computes each as late
  // as it is read, so that the sum is relinearized and rescaled once.
  std::string EmitSum(const SplitSum& sum, const std::string& name) {
    const bool is_alone = sum.terms.size() + sum.products.size() == 1 && sum.constant == 0;
    const std::string part = is_alone ? name : PartName();
    std::vector<Summand> summands;
    for (const SplitSum::Term& term : sum.terms) summands.push_back(EmitTerm(term, part));
    for (const SplitProduct& product : sum.products) {
      const std::string quotient = EmitSum(product.quotient, PartName());
      summands.push_back({builder_.Multiply(quotient, elements_.at(product.divisor), part), false});
    }
    return AddUp(std::move(summands), sum.constant, name);
  }

  Summand EmitTerm(const SplitSum::Term& term, const std::string& name) {
    const std::string& element = elements_.at(term.index);
    if (std::abs(term.coefficient) == 1) return {element, term.coefficient < 0};
    return {builder_.MultiplyPlain(element, term.coefficient, name), false};
  }

  // The last operation is called `name`.
  std::string AddUp(std::vector<Summand> summands, double constant, const std::string& name) {
    std::stable_partition(summands.begin(), summands.end(),
                          [](const Summand& summand) { return !summand.is_negative; });
    std::string sum;
    for (size_t i = 0; i < summands.size(); ++i) {
      const bool is_last = i + 1 == summands.size() && constant == 0;
      const std::string part = is_last ? name : PartName();
      const auto& [edge, is_negative] = summands[i];
      if (i == 0) {
        sum = is_negative ? builder_.Negate(edge, part) : edge;
      } else {
        sum = is_negative ? builder_.Subtract(sum, edge, part) : builder_.Add(sum, edge, part);
      }
    }
    return constant == 0 ? sum : builder_.AddPlain(sum, constant, name);
  }

  CircuitBuilder& builder_;
  const PolynomialBasis basis_;
  const std::string base_;
  // B_1 is B_argument_factor of x.
  int argument_factor_ = 1;
  // Edges by index.
  std::map<int, std::string> elements_;
};

}  // namespace

IntervalMap MapToUnitInterval(const Polynomial& polynomial) {
  const double width = polynomial.upper - polynomial.lower;
  return {.scale = 2 / width, .shift = -(polynomial.lower + polynomial.upper) / width};
}

std::string AppendIntervalMap(CircuitBuilder& builder, std::string_view edge,
                              const Polynomial& polynomial, std::string_view base) {
  const IntervalMap map = MapToUnitInterval(polynomial);
  const std::string name(base.empty() ? std::string_view("unit_interval") : base);
  if (map.scale == 1) {
    return map.shift == 0 ? std::string(edge) : builder.AddPlain(edge, map.shift, name);
  }
  if (map.shift == 0) return builder.MultiplyPlain(edge, map.scale, name);
  return builder.AddPlain(builder.MultiplyPlain(edge, map.scale, absl::StrCat(name, "_part")),
                          map.shift, name);
}

absl::StatusOr<std::string> AppendPolynomial(CircuitBuilder& builder, std::string_view edge,
                                             const Polynomial& polynomial, std::string_view base) {
  CIPHERD_ASSIGN_OR_RETURN(std::vector<double> coefficients, CheckedCoefficients(polynomial));
  const std::string name(base.empty() ? std::string_view("polynomial") : base);
  std::string x(edge);
  if (polynomial.basis == PolynomialBasis::kChebyshev && coefficients.size() > 2) {
    x = AppendIntervalMap(builder, edge, polynomial, absl::StrCat(name, "_argument"));
  }
  Emitter emitter(builder, polynomial.basis, x, name);
  if (coefficients.size() == 1) return emitter.EmitConstant(coefficients[0]);
  while (IsEven(coefficients)) {
    emitter.SubstituteSecondElement();
    for (size_t i = 0; 2 * i < coefficients.size(); ++i) coefficients[i] = coefficients[2 * i];
    coefficients.resize((coefficients.size() + 1) / 2);
  }
  return emitter.Emit(SplitPolynomial(polynomial.basis, std::move(coefficients)));
}

}  // namespace cipherd::planning
