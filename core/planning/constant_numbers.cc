#include "core/planning/constant_numbers.h"

namespace cipherd::planning {
namespace {

template <typename From, typename To>
std::vector<To> Convert(const value::Tensor& constant) {
  const From* numbers = constant.data_as<const From>();
  return std::vector<To>(numbers, numbers + constant.element_count());
}

}  // namespace

std::vector<double> NumbersOf(const value::Tensor& constant) {
  return constant.dtype() == value::DType::kFloat64 ? Convert<double, double>(constant)
                                                    : Convert<float, double>(constant);
}

std::vector<double> NumbersOf(const programs::Constants& constants, std::string_view name) {
  if (name.empty()) return {};
  return NumbersOf(constants.find(name)->second);
}

ConstantNumbers::ConstantNumbers(const value::Tensor& constant) { Hold(constant); }

ConstantNumbers::ConstantNumbers(const programs::Constants& constants, std::string_view name) {
  if (!name.empty()) Hold(constants.find(name)->second);
}

void ConstantNumbers::Hold(const value::Tensor& constant) {
  if (constant.dtype() == value::DType::kFloat64) {
    span_ = {constant.data_as<const double>(), static_cast<size_t>(constant.element_count())};
  } else {
    converted_ = NumbersOf(constant);
    span_ = converted_;
  }
}

std::vector<int64_t> IntegersOf(const value::Tensor& constant) {
  return constant.dtype() == value::DType::kInt64 ? Convert<int64_t, int64_t>(constant)
                                                  : Convert<int32_t, int64_t>(constant);
}

}  // namespace cipherd::planning
