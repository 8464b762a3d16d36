#include "proto/codec/context_codec.h"

#include <cstdint>
#include <limits>
#include <optional>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "proto/codec/enum_codec.h"
#include "proto/codec/mismatch.h"

namespace cipherd::codec {
namespace {

constexpr size_t kDigestBytes = 32;
constexpr uint32_t kMaxInt32 = std::numeric_limits<int32_t>::max();

absl::StatusOr<int32_t> ReadInt32(uint32_t number, std::string_view path,
                                  const std::string& field) {
  if (number > kMaxInt32) {
    return internal::Mismatch(path, field, absl::StrCat("at most ", kMaxInt32),
                              absl::StrCat(number));
  }
  return static_cast<int32_t>(number);
}

}  // namespace

void EncodeContext(const ckks::ContextParameters& parameters, v1::ContextParameters* out) {
  out->Clear();
  out->set_log_n(static_cast<uint32_t>(parameters.log_n));
  out->mutable_q_primes()->Add(parameters.q_primes.begin(), parameters.q_primes.end());
  out->mutable_p_primes()->Add(parameters.p_primes.begin(), parameters.p_primes.end());
  for (int32_t size : parameters.rescale_groups) {
    out->add_rescale_groups(static_cast<uint32_t>(size));
  }
  for (const std::vector<int32_t>& digit : parameters.digits) {
    v1::ContextParameters::Digit* ids = out->add_digits();
    for (int32_t id : digit) ids->add_prime_ids(static_cast<uint32_t>(id));
  }
  out->set_galois_generator(parameters.galois_generator);
  out->set_default_scale(parameters.default_scale);
  out->set_secret_distribution(internal::ToWire(parameters.secret_distribution));
}

absl::StatusOr<ckks::ContextParameters> DecodeContextUnvalidated(
    const v1::ContextParameters& message, std::string_view path) {
  ckks::ContextParameters parameters;
  CIPHERD_ASSIGN_OR_RETURN(parameters.log_n, ReadInt32(message.log_n(), path, ".log_n"));
  parameters.q_primes.assign(message.q_primes().begin(), message.q_primes().end());
  parameters.p_primes.assign(message.p_primes().begin(), message.p_primes().end());
  for (int i = 0; i < message.rescale_groups_size(); ++i) {
    CIPHERD_ASSIGN_OR_RETURN(int32_t size, ReadInt32(message.rescale_groups(i), path,
                                                     absl::StrCat(".rescale_groups[", i, "]")));
    parameters.rescale_groups.push_back(size);
  }
  for (int d = 0; d < message.digits_size(); ++d) {
    std::vector<int32_t>& digit = parameters.digits.emplace_back();
    for (int i = 0; i < message.digits(d).prime_ids_size(); ++i) {
      CIPHERD_ASSIGN_OR_RETURN(int32_t id, ReadInt32(message.digits(d).prime_ids(i), path,
                                                     absl::StrCat(".digits[", d, "][", i, "]")));
      digit.push_back(id);
    }
  }
  parameters.galois_generator = message.galois_generator();
  parameters.default_scale = message.default_scale();
  const std::optional<ckks::SecretDistribution> distribution =
      internal::FromWire<ckks::SecretDistribution>(message.secret_distribution());
  if (!distribution.has_value()) {
    return internal::Mismatch(path, ".secret_distribution", "UNIFORM_TERNARY (1)",
                              absl::StrCat(static_cast<int>(message.secret_distribution())));
  }
  parameters.secret_distribution = *distribution;
  return parameters;
}

absl::StatusOr<ckks::ContextParameters> DecodeContext(const v1::ContextParameters& message,
                                                      ckks::SecurityPolicy policy,
                                                      std::string_view path) {
  CIPHERD_ASSIGN_OR_RETURN(ckks::ContextParameters parameters,
                           DecodeContextUnvalidated(message, path));
  const absl::Status valid = parameters.Validate(policy);
  if (!valid.ok()) {
    // Validate starts its messages with the field.
    const std::string text(valid.message());
    const size_t field_end = text.find(": ");
    const std::string field = field_end == std::string::npos
                                  ? std::string(path)
                                  : absl::StrCat(std::string(path), ".", text.substr(0, field_end));
    return WithErrorDetail(absl::Status(valid.code(), absl::StrCat(std::string(path), ".", text)),
                           v1::ERROR_REASON_MALFORMED_VALUE, field);
  }
  return parameters;
}

absl::StatusOr<std::string> EncodeDigest(std::string_view hex, std::string_view path) {
  auto value_of = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  bool is_hex = hex.size() == 2 * kDigestBytes;
  for (char c : hex) is_hex = is_hex && ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'));
  if (!is_hex) {
    return internal::Mismatch(path, "", "64 lower-case hexadecimal digits",
                              absl::StrCat(hex.size(), " characters that are not"));
  }
  std::string bytes;
  for (size_t i = 0; i < hex.size(); i += 2) {
    bytes.push_back(static_cast<char>(value_of(hex[i]) * 16 + value_of(hex[i + 1])));
  }
  return bytes;
}

absl::StatusOr<std::string> DecodeDigest(std::string_view bytes, std::string_view path) {
  if (bytes.size() != kDigestBytes) {
    return internal::Mismatch(path, "", absl::StrCat(kDigestBytes, " bytes"),
                              absl::StrCat(bytes.size()));
  }
  return absl::BytesToHexString(absl::string_view(bytes.data(), bytes.size()));
}

}  // namespace cipherd::codec
