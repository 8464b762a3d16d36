// Checks that turn an exact value into a typed view of it, and the messages they give. Internal to
// core/ckks and core/secret.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/ckks/context_parameters.h"
#include "core/value/exact_value.h"
#include "core/value/tensor.h"

namespace cipherd::ckks::internal {

// "[2, 4, 8192]".
std::string ListOf(const std::vector<int64_t>& numbers);

// A binary64 with all its digits.
std::string ExactText(double number);

// `<path>.<field>: expected …, got …`.
absl::Status Mismatch(std::string_view path, std::string_view field, std::string_view expected,
                      std::string_view actual);

// Type, schema version, context id: before anything else of a value is believed.
absl::Status CheckIdentity(const value::ExactValue& value, std::string_view path,
                           value::ValueType type, std::string_view context_id);

// The depth, present and in [0, max_depth].
absl::StatusOr<int> CheckDepth(const value::ExactValue& value, std::string_view path,
                               const ContextParameters& parameters);

// prime_ids present and equal to `expected`.
absl::Status CheckPrimeIds(const value::ExactValue& value, std::string_view path,
                           const std::vector<int64_t>& expected);

// The tensor "data", alone, contiguous uint64.
absl::StatusOr<value::Tensor> CheckData(const value::ExactValue& value, std::string_view path);

// The basis, and standard residues.
absl::Status CheckResidues(const value::ExactValue& value, std::string_view path,
                           value::ModulusBasis basis);

// The domain, present.
absl::StatusOr<value::PolynomialDomain> CheckDomain(const value::ExactValue& value,
                                                    std::string_view path);

// The scale, present, finite, positive.
absl::StatusOr<double> CheckScale(const value::ExactValue& value, std::string_view path);

// A field of metadata that must be a certain number, or absent.
absl::Status CheckNumber(std::string_view path, std::string_view field,
                         const std::optional<int64_t>& actual, std::optional<int64_t> expected);

}  // namespace cipherd::ckks::internal
