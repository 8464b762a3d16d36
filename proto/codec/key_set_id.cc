#include "proto/codec/key_set_id.h"

#include "absl/strings/str_cat.h"
#include "proto/codec/enum_codec.h"
#include "proto/codec/mismatch.h"
#include "proto/codec/value_admission.h"

namespace cipherd::codec {

static_assert(ckks::KeyTypeNumber(value::ValueType::kRotationKey) ==
              static_cast<int>(v1::VALUE_TYPE_ROTATION_KEY));

absl::StatusOr<ckks::KeyId> KeyIdOf(const value::ExactValue& key, std::string_view path) {
  if (!kEvaluationKeyTypes.Contains(key.type)) {
    return internal::Mismatch(path, ".type", kEvaluationKeyTypes.ToString(),
                              value::ToString(key.type), v1::ERROR_REASON_SIGNATURE_MISMATCH);
  }
  if (key.type != value::ValueType::kRotationKey) return ckks::KeyId{key.type, 0};
  if (!key.metadata.rotation_step.has_value()) {
    return internal::Mismatch(path, ".rotation_step", "a number", "none");
  }
  return ckks::KeyId{key.type, *key.metadata.rotation_step};
}

absl::StatusOr<base::Sha256Digest> PayloadDigest(const value::ExactValue& key,
                                                 std::string_view path) {
  base::Sha256 hash;
  for (const auto& [name, tensor] : key.tensors) {
    if (!tensor.is_contiguous() || !tensor.placement().is_host()) {
      return internal::Mismatch(path, absl::StrCat(".", name), "a contiguous tensor on the host",
                                absl::StrCat("strides ", internal::ListOf(tensor.strides()), " on ",
                                             tensor.placement().ToString()));
    }
    hash.Update(tensor.data(), static_cast<size_t>(tensor.bytes()));
  }
  return hash.Finish();
}

}  // namespace cipherd::codec
