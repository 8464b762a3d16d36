#include "proto/codec/metadata_codec.h"

#include <optional>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "proto/codec/enum_codec.h"
#include "proto/codec/mismatch.h"

namespace cipherd::codec::internal {
namespace {

// 0 is "absent".
template <typename Core>
absl::Status ReadEnum(typename WireEnum<Core>::Type wire, std::string_view path, const char* field,
                      std::optional<Core>& out) {
  if (static_cast<int>(wire) == 0) return absl::OkStatus();
  out = FromWire<Core>(wire);
  if (out.has_value()) return absl::OkStatus();
  return Mismatch(path, field, absl::StrCat("1 to ", WireEnum<Core>::kLast),
                  absl::StrCat(static_cast<int>(wire)));
}

}  // namespace

void EncodeMetadata(const value::ValueMetadata& metadata, v1::ValueMetadata* out) {
  if (metadata.depth.has_value()) out->set_depth(*metadata.depth);
  if (metadata.scale.has_value()) out->set_scale(*metadata.scale);
  if (metadata.prime_ids.has_value()) {
    auto* ids = out->mutable_prime_ids()->mutable_id();
    ids->Add(metadata.prime_ids->begin(), metadata.prime_ids->end());
  }
  if (metadata.domain.has_value()) out->set_domain(ToWire(*metadata.domain));
  if (metadata.basis.has_value()) out->set_basis(ToWire(*metadata.basis));
  if (metadata.residue_representation.has_value()) {
    out->set_residue_representation(ToWire(*metadata.residue_representation));
  }
  if (metadata.plaintext_representation.has_value()) {
    out->set_plaintext_representation(ToWire(*metadata.plaintext_representation));
  }
  if (metadata.rotation_step.has_value()) out->set_rotation_step(*metadata.rotation_step);
  if (metadata.galois_element.has_value()) out->set_galois_element(*metadata.galois_element);
  if (metadata.digit_count.has_value()) out->set_digit_count(*metadata.digit_count);
}

absl::StatusOr<value::ValueMetadata> DecodeMetadata(const v1::ValueMetadata& message,
                                                    std::string_view path) {
  value::ValueMetadata metadata;
  if (message.has_depth()) metadata.depth = message.depth();
  if (message.has_scale()) metadata.scale = message.scale();
  if (message.has_prime_ids()) {
    metadata.prime_ids.emplace(message.prime_ids().id().begin(), message.prime_ids().id().end());
  }
  CIPHERD_RETURN_IF_ERROR(ReadEnum(message.domain(), path, ".domain", metadata.domain));
  CIPHERD_RETURN_IF_ERROR(ReadEnum(message.basis(), path, ".basis", metadata.basis));
  CIPHERD_RETURN_IF_ERROR(ReadEnum(message.residue_representation(), path,
                                   ".residue_representation", metadata.residue_representation));
  CIPHERD_RETURN_IF_ERROR(ReadEnum(message.plaintext_representation(), path,
                                   ".plaintext_representation", metadata.plaintext_representation));
  if (message.has_rotation_step()) metadata.rotation_step = message.rotation_step();
  if (message.has_galois_element()) metadata.galois_element = message.galois_element();
  if (message.has_digit_count()) metadata.digit_count = message.digit_count();
  return metadata;
}

}  // namespace cipherd::codec::internal
