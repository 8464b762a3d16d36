#include "proto/codec/value_admission.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status_macros.h"
#include "proto/codec/enum_codec.h"
#include "proto/codec/metadata_codec.h"
#include "proto/codec/mismatch.h"
#include "proto/codec/state_check.h"
#include "proto/codec/tensor_admission.h"
#include "proto/codec/value_schema.h"

namespace cipherd::codec {

std::string ValueTypeSet::ToString() const {
  std::string text;
  for (int type = 0; type <= static_cast<int>(value::ValueType::kSecretKey); ++type) {
    if (!Contains(static_cast<value::ValueType>(type))) continue;
    absl::StrAppend(&text, text.empty() ? "" : " or ",
                    std::string(value::ToString(static_cast<value::ValueType>(type))));
  }
  return text;
}

namespace {

using internal::AboveLimit;
using internal::Mismatch;
using internal::ValueSchema;
using value::ValueType;

// No context has more primes (core/ckks/context_parameters.h).
constexpr int kMaxPrimeIds = 64;

// One value on its way through the checks, in the order of the header. A check may rely on those
// before it.
class ValueCheck {
 public:
  ValueCheck(const v1::ExactValue& message, std::string_view path, const WireLimits& limits)
      : message_(message), path_(path), limits_(limits) {}

  absl::StatusOr<AdmittedValue> Run(std::span<const KnownContextPtr> contexts, ValueTypeSet types,
                                    uint64_t max_bytes) {
    CIPHERD_RETURN_IF_ERROR(RefuseSecretKey(message_.type(), path_));
    CIPHERD_RETURN_IF_ERROR(CheckCaps(max_bytes));
    CIPHERD_RETURN_IF_ERROR(CheckType(types));
    CIPHERD_RETURN_IF_ERROR(CheckSchema());
    CIPHERD_RETURN_IF_ERROR(CheckContext(contexts));
    CIPHERD_RETURN_IF_ERROR(internal::CheckState(description_.type, description_.metadata, plan_,
                                                 *schema_, *context_, path_));
    return Result();
  }

 private:
  const value::ValueMetadata& metadata() const { return description_.metadata; }

  absl::Status CheckCaps(uint64_t max_bytes) {
    if (message_.tensors_size() > 1) {
      return AboveLimit(path_, ".tensors", 1, static_cast<uint64_t>(message_.tensors_size()));
    }
    for (const v1::NamedTensor& named : message_.tensors()) {
      CIPHERD_RETURN_IF_ERROR(internal::CheckName(named.name(), limits_.max_name_bytes,
                                                  absl::StrCat(path_, ".tensors[0].name")));
      CIPHERD_RETURN_IF_ERROR(internal::CheckTensorCaps(named.tensor(), max_bytes, limits_,
                                                        absl::StrCat(path_, ".", named.name())));
    }
    const int id_count = message_.metadata().prime_ids().id_size();
    if (id_count > kMaxPrimeIds) {
      return AboveLimit(path_, ".prime_ids", kMaxPrimeIds, static_cast<uint64_t>(id_count));
    }
    return absl::OkStatus();
  }

  absl::Status CheckType(ValueTypeSet types) {
    const std::optional<ValueType> type = internal::FromWire<ValueType>(message_.type());
    if (!type.has_value()) {
      return Mismatch(path_, ".type", absl::StrCat("1 to ", internal::WireEnum<ValueType>::kLast),
                      absl::StrCat(static_cast<int>(message_.type())));
    }
    if (!types.Contains(*type)) {
      return Mismatch(path_, ".type", types.ToString(), value::ToString(*type),
                      v1::ERROR_REASON_SIGNATURE_MISMATCH);
    }
    description_.type = *type;
    return absl::OkStatus();
  }

  absl::Status CheckSchema() {
    if (message_.schema_version() != value::kValueSchemaVersion) {
      return RefuseUnsupported(absl::StrCat(path_, ".schema_version"),
                               absl::StrCat("expected ", value::kValueSchemaVersion, ", got ",
                                            message_.schema_version()));
    }
    if (description_.type == ValueType::kCompressedPlaintext) {
      return RefuseUnsupported(
          absl::StrCat(path_, ".type"),
          "expected a type that this build implements, got CompressedPlaintext");
    }
    CIPHERD_ASSIGN_OR_RETURN(description_.metadata,
                             internal::DecodeMetadata(message_.metadata(), path_));
    schema_ = internal::FindValueSchema(description_.type, metadata().plaintext_representation);
    if (schema_ == nullptr) {
      return Mismatch(path_, ".plaintext_representation",
                      "slots, integer_coefficients, approximate_coefficients or rns", "none");
    }
    CIPHERD_RETURN_IF_ERROR(CheckFields());
    if (message_.tensors_size() != 1) return Mismatch(path_, ".tensors", "1", "0");
    if (message_.tensors(0).name() != internal::kDataName) {
      return Mismatch(path_, ".tensors[0].name", "'data'",
                      absl::StrCat("'", message_.tensors(0).name(), "'"));
    }
    return CheckDataSchema();
  }

  // Exactly the fields of the schema are present.
  absl::Status CheckFields() {
    const std::map<std::string, value::MetadataField> present = metadata().ToFields();
    for (const std::string& field : schema_->fields) {
      if (!present.contains(field)) {
        return Mismatch(path_, absl::StrCat(".", field),
                        absl::StrCat("present in a ", std::string(ToString(description_.type))),
                        "none");
      }
    }
    for (const auto& [field, content] : present) {
      if (std::find(schema_->fields.begin(), schema_->fields.end(), field) ==
          schema_->fields.end()) {
        return Mismatch(path_, absl::StrCat(".", field),
                        absl::StrCat("none in a ", std::string(ToString(description_.type))),
                        "one");
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckDataSchema() {
    CIPHERD_ASSIGN_OR_RETURN(
        plan_, internal::ReadTensorSchema(message_.tensors(0).tensor(),
                                          absl::StrCat(path_, ".", internal::kDataName)));
    const std::vector<value::DType>& dtypes = schema_->dtypes;
    if (std::find(dtypes.begin(), dtypes.end(), plan_.dtype) == dtypes.end()) {
      auto append = [](std::string* out, value::DType dtype) {
        absl::StrAppend(out, std::string(value::ToString(dtype)));
      };
      return Mismatch(plan_.path, ".dtype", absl::StrJoin(dtypes, " or ", append),
                      value::ToString(plan_.dtype));
    }
    const auto rank = static_cast<int>(plan_.shape.size());
    const int least = schema_->min_rank();
    if (rank < least || (rank > least && !schema_->has_batch())) {
      return Mismatch(plan_.path, ".shape",
                      absl::StrCat(least, schema_->has_batch() ? " or more" : "", " dimensions"),
                      absl::StrCat(rank));
    }
    return absl::OkStatus();
  }

  absl::Status CheckContext(std::span<const KnownContextPtr> contexts) {
    if (!message_.has_context_id()) {
      return Mismatch(path_, ".context_id", "32 bytes", "none", v1::ERROR_REASON_WRONG_CONTEXT);
    }
    CIPHERD_ASSIGN_OR_RETURN(context_, RequireContext(contexts, message_.context_id(),
                                                      absl::StrCat(path_, ".context_id")));
    description_.context_id = context_->id();
    return absl::OkStatus();
  }

  AdmittedValue Result() {
    if (schema_->is_residues()) {
      for (int64_t id : *metadata().prime_ids) {
        plan_.limb_primes.push_back(context_->primes()[static_cast<size_t>(id)]);
      }
    }
    AdmittedValue admitted;
    admitted.payload_bytes = plan_.byte_count;
    description_.tensors.emplace_back(internal::kDataName, internal::AnnouncedTensor(plan_));
    admitted.description = std::move(description_);
    admitted.tensors.push_back(std::move(plan_));
    return admitted;
  }

  const v1::ExactValue& message_;
  const std::string path_;
  const WireLimits& limits_;

  value::ExactValue description_;
  const ValueSchema* schema_ = nullptr;
  KnownContextPtr context_;
  TensorPlan plan_;
};

}  // namespace

absl::Status RefuseSecretKey(v1::ValueType type, std::string_view path) {
  if (type != v1::VALUE_TYPE_SECRET_KEY) return absl::OkStatus();
  return Mismatch(path, ".type", "anything but a secret key, which never leaves its owner",
                  "SecretKey", v1::ERROR_REASON_SECRET_KEY_REFUSED);
}

absl::StatusOr<AdmittedValue> AdmitValue(const v1::ExactValue& message,
                                         std::span<const KnownContextPtr> contexts,
                                         ValueTypeSet types, uint64_t max_bytes,
                                         const WireLimits& limits, std::string_view path) {
  return ValueCheck(message, path, limits).Run(contexts, types, max_bytes);
}

}  // namespace cipherd::codec
