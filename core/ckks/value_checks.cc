#include "core/ckks/value_checks.h"

#include <cmath>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace cipherd::ckks::internal {
namespace {

template <typename T>
std::string Text(const std::optional<T>& field) {
  if (!field.has_value()) return "none";
  return std::string(value::ToString(*field));
}

std::string NumberText(const std::optional<int64_t>& number) {
  return number.has_value() ? absl::StrCat(*number) : "none";
}

}  // namespace

std::string ListOf(const std::vector<int64_t>& numbers) {
  return absl::StrCat("[", absl::StrJoin(numbers, ", "), "]");
}

std::string ExactText(double number) { return absl::StrFormat("%.17g", number); }

absl::Status Mismatch(std::string_view path, std::string_view field, std::string_view expected,
                      std::string_view actual) {
  return absl::InvalidArgumentError(absl::StrCat(std::string(path), ".", std::string(field),
                                                 ": expected ", std::string(expected), ", got ",
                                                 std::string(actual)));
}

absl::Status CheckIdentity(const value::ExactValue& value, std::string_view path,
                           value::ValueType type, std::string_view context_id) {
  if (value.schema_version != value::kValueSchemaVersion) {
    return Mismatch(path, "schema_version", absl::StrCat(value::kValueSchemaVersion),
                    absl::StrCat(value.schema_version));
  }
  if (value.type != type) {
    return Mismatch(path, "type", value::ToString(type), value::ToString(value.type));
  }
  if (value.context_id != context_id) {
    return Mismatch(path, "context_id", context_id, value.context_id.value_or("none"));
  }
  return absl::OkStatus();
}

absl::StatusOr<int> CheckDepth(const value::ExactValue& value, std::string_view path,
                               const ContextParameters& parameters) {
  const std::optional<int64_t>& depth = value.metadata.depth;
  if (!depth.has_value() || *depth < 0 || *depth > parameters.max_depth()) {
    return Mismatch(path, "depth", absl::StrCat("0 to ", parameters.max_depth()),
                    NumberText(depth));
  }
  return static_cast<int>(*depth);
}

absl::Status CheckPrimeIds(const value::ExactValue& value, std::string_view path,
                           const std::vector<int64_t>& expected) {
  if (value.metadata.prime_ids != expected) {
    return Mismatch(
        path, "prime_ids", ListOf(expected),
        value.metadata.prime_ids.has_value() ? ListOf(*value.metadata.prime_ids) : "none");
  }
  return absl::OkStatus();
}

absl::StatusOr<value::Tensor> CheckData(const value::ExactValue& value, std::string_view path) {
  const value::Tensor* data = value.FindTensor("data");
  if (data == nullptr || value.tensors.size() != 1) {
    return Mismatch(
        path, "tensors", "\"data\" alone",
        absl::StrCat(value.tensors.size(), " tensors", data == nullptr ? " without \"data\"" : ""));
  }
  if (data->dtype() != value::DType::kUint64) {
    return Mismatch(path, "data.dtype", "uint64", value::ToString(data->dtype()));
  }
  if (!data->is_contiguous()) {
    return Mismatch(path, "data.strides", ListOf(value::ContiguousStrides(data->shape())),
                    ListOf(data->strides()));
  }
  return *data;
}

absl::Status CheckResidues(const value::ExactValue& value, std::string_view path,
                           value::ModulusBasis basis) {
  if (value.metadata.basis != basis) {
    return Mismatch(path, "basis", value::ToString(basis), Text(value.metadata.basis));
  }
  constexpr auto kStandard = value::ResidueRepresentation::kStandard;
  if (value.metadata.residue_representation != kStandard) {
    return Mismatch(path, "residue_representation", value::ToString(kStandard),
                    Text(value.metadata.residue_representation));
  }
  return absl::OkStatus();
}

absl::StatusOr<value::PolynomialDomain> CheckDomain(const value::ExactValue& value,
                                                    std::string_view path) {
  if (!value.metadata.domain.has_value()) {
    return Mismatch(path, "domain", "ntt or coefficient", "none");
  }
  return *value.metadata.domain;
}

absl::StatusOr<double> CheckScale(const value::ExactValue& value, std::string_view path) {
  const std::optional<double>& scale = value.metadata.scale;
  if (!scale.has_value() || !std::isfinite(*scale) || *scale <= 0) {
    return Mismatch(path, "scale", "a finite number above 0",
                    scale.has_value() ? ExactText(*scale) : "none");
  }
  return *scale;
}

absl::Status CheckNumber(std::string_view path, std::string_view field,
                         const std::optional<int64_t>& actual, std::optional<int64_t> expected) {
  if (actual != expected) return Mismatch(path, field, NumberText(expected), NumberText(actual));
  return absl::OkStatus();
}

}  // namespace cipherd::ckks::internal
