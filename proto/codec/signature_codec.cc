#include "proto/codec/signature_codec.h"

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/value/value_tree.h"
#include "proto/codec/context_codec.h"
#include "proto/codec/enum_codec.h"
#include "proto/codec/metadata_codec.h"
#include "proto/codec/mismatch.h"
#include "proto/codec/tree_structure.h"

namespace cipherd::codec {
namespace {

using execution::TensorSignature;
using execution::ValueSignature;
using execution::ValueTreeSignature;
using internal::Mismatch;
using value::TreeKind;

// The enumerator whose name is `text`, where there is one.
template <typename Core>
std::optional<Core> FromName(std::string_view text) {
  for (int i = 0; i < internal::WireEnum<Core>::kLast; ++i) {
    if (value::ToString(static_cast<Core>(i)) == text) return static_cast<Core>(i);
  }
  return std::nullopt;
}

// Sets `out` from a field of a signature. False where the field has another type, or names no
// enumerator.
template <typename T>
bool SetField(const value::MetadataField& field, std::optional<T>& out) {
  if constexpr (std::is_enum_v<T>) {
    const std::string* name = std::get_if<std::string>(&field);
    if (name != nullptr) out = FromName<T>(*name);
  } else {
    const T* content = std::get_if<T>(&field);
    if (content != nullptr) out = *content;
  }
  return out.has_value();
}

bool SetMetadata(const std::string& key, const value::MetadataField& field,
                 value::ValueMetadata& out) {
  if (key == "depth") return SetField(field, out.depth);
  if (key == "scale") return SetField(field, out.scale);
  if (key == "prime_ids") return SetField(field, out.prime_ids);
  if (key == "domain") return SetField(field, out.domain);
  if (key == "basis") return SetField(field, out.basis);
  if (key == "residue_representation") return SetField(field, out.residue_representation);
  if (key == "plaintext_representation") return SetField(field, out.plaintext_representation);
  if (key == "rotation_step") return SetField(field, out.rotation_step);
  if (key == "galois_element") return SetField(field, out.galois_element);
  if (key == "digit_count") return SetField(field, out.digit_count);
  return false;
}

void WriteTensor(const TensorSignature& signature, v1::TensorSignature* out) {
  out->set_dtype(internal::ToWire(signature.dtype));
  out->mutable_shape()->Add(signature.shape.begin(), signature.shape.end());
  out->mutable_strides()->Add(signature.strides.begin(), signature.strides.end());
  out->set_layout(internal::ToWire(signature.layout));
  out->set_requires_grad(signature.requires_grad);
}

absl::Status WriteValue(const ValueSignature& signature, std::string_view path,
                        v1::ValueSignature* out) {
  const std::optional<value::ValueType> type = FromName<value::ValueType>(signature.type_name);
  if (!type.has_value()) {
    return Mismatch(path, ".type", "a type of the wire format", signature.type_name);
  }
  out->set_type(internal::ToWire(*type));
  out->set_schema_version(signature.schema_version);
  if (signature.context_id.has_value()) {
    CIPHERD_ASSIGN_OR_RETURN(
        *out->mutable_context_id(),
        EncodeDigest(*signature.context_id, absl::StrCat(std::string(path), ".context_id")));
  }
  value::ValueMetadata metadata;
  for (const auto& [key, field] : signature.metadata) {
    if (!SetMetadata(key, field, metadata)) {
      return Mismatch(path, absl::StrCat(".", key), "metadata that the wire format has",
                      value::FieldToString(field));
    }
  }
  internal::EncodeMetadata(metadata, out->mutable_metadata());
  for (const auto& [name, tensor] : signature.tensors) {
    v1::ValueSignature::NamedTensorSignature* named = out->add_tensors();
    named->set_name(name);
    WriteTensor(tensor, named->mutable_tensor());
  }
  return absl::OkStatus();
}

absl::Status WriteTree(const ValueTreeSignature& signature, std::string_view path,
                       v1::ValueTreeSignature* out) {
  const std::vector<ValueTreeSignature>& children = signature.children();
  switch (signature.kind()) {
    case TreeKind::kTensor:
      WriteTensor(signature.tensor(), out->mutable_tensor());
      return absl::OkStatus();
    case TreeKind::kValue:
      return WriteValue(signature.value(), path, out->mutable_value());
    case TreeKind::kList:
    case TreeKind::kTuple: {
      v1::ValueTreeSignature::Sequence* sequence =
          signature.kind() == TreeKind::kList ? out->mutable_list() : out->mutable_tuple();
      for (size_t i = 0; i < children.size(); ++i) {
        CIPHERD_RETURN_IF_ERROR(
            WriteTree(children[i], value::ChildPath(path, i), sequence->add_children()));
      }
      return absl::OkStatus();
    }
    case TreeKind::kDict: {
      v1::ValueTreeSignature::Dict* dict = out->mutable_dict();
      for (size_t i = 0; i < children.size(); ++i) {
        v1::ValueTreeSignature::Entry* entry = dict->add_entries();
        entry->set_key(signature.keys()[i]);
        CIPHERD_RETURN_IF_ERROR(WriteTree(children[i], value::ChildPath(path, signature.keys()[i]),
                                          entry->mutable_child()));
      }
      return absl::OkStatus();
    }
    case TreeKind::kNone:
    case TreeKind::kOpaque:
      break;
  }
  return absl::InternalError(absl::StrCat(std::string(path), ": a signature of no kind"));
}

absl::StatusOr<TensorSignature> ReadTensor(const v1::TensorSignature& message,
                                           const WireLimits& limits, std::string_view path) {
  if (message.shape_size() > limits.max_rank) {
    return internal::AboveLimit(path, ".rank", static_cast<uint64_t>(limits.max_rank),
                                static_cast<uint64_t>(message.shape_size()));
  }
  if (message.strides_size() != message.shape_size()) {
    return Mismatch(path, ".strides", absl::StrCat(message.shape_size(), " numbers"),
                    absl::StrCat(message.strides_size()));
  }
  const std::optional<value::DType> dtype = internal::FromWire<value::DType>(message.dtype());
  if (!dtype.has_value()) {
    return Mismatch(path, ".dtype", absl::StrCat("1 to ", internal::WireEnum<value::DType>::kLast),
                    absl::StrCat(static_cast<int>(message.dtype())));
  }
  const std::optional<value::Layout> layout = internal::FromWire<value::Layout>(message.layout());
  if (!layout.has_value()) {
    return Mismatch(path, ".layout", "LAYOUT_STRIDED (1)",
                    absl::StrCat(static_cast<int>(message.layout())));
  }
  return TensorSignature{.shape = {message.shape().begin(), message.shape().end()},
                         .strides = {message.strides().begin(), message.strides().end()},
                         .dtype = *dtype,
                         .layout = *layout,
                         .requires_grad = message.requires_grad()};
}

absl::StatusOr<ValueSignature> ReadValue(const v1::ValueSignature& message,
                                         const WireLimits& limits, std::string_view path) {
  const std::optional<value::ValueType> type = internal::FromWire<value::ValueType>(message.type());
  if (!type.has_value()) {
    return Mismatch(path, ".type",
                    absl::StrCat("1 to ", internal::WireEnum<value::ValueType>::kLast),
                    absl::StrCat(static_cast<int>(message.type())));
  }
  ValueSignature signature;
  signature.type_name = std::string(value::ToString(*type));
  signature.schema_version = message.schema_version();
  if (message.has_context_id()) {
    CIPHERD_ASSIGN_OR_RETURN(
        signature.context_id,
        DecodeDigest(message.context_id(), absl::StrCat(std::string(path), ".context_id")));
  }
  CIPHERD_ASSIGN_OR_RETURN(const value::ValueMetadata metadata,
                           internal::DecodeMetadata(message.metadata(), path));
  for (auto& [key, field] : metadata.ToFields()) signature.metadata.emplace_back(key, field);
  for (int i = 0; i < message.tensors_size(); ++i) {
    const std::string& name = message.tensors(i).name();
    const std::string field = absl::StrCat(std::string(path), ".tensors[", i, "].name");
    CIPHERD_RETURN_IF_ERROR(internal::CheckName(name, limits.max_name_bytes, field));
    if (i > 0 && name <= message.tensors(i - 1).name()) {
      return Mismatch(field, "", "names in ascending order", absl::StrCat("'", name, "'"));
    }
    CIPHERD_ASSIGN_OR_RETURN(TensorSignature tensor,
                             ReadTensor(message.tensors(i).tensor(), limits,
                                        absl::StrCat(std::string(path), ".", name)));
    signature.tensors.emplace_back(name, std::move(tensor));
  }
  return signature;
}

absl::StatusOr<ValueTreeSignature> ReadTree(const v1::ValueTreeSignature& message, int nesting,
                                            internal::StructureBudget& budget,
                                            const std::string& path) {
  CIPHERD_RETURN_IF_ERROR(budget.AddNode(nesting, path));
  switch (message.node_case()) {
    case v1::ValueTreeSignature::kTensor: {
      CIPHERD_ASSIGN_OR_RETURN(TensorSignature tensor,
                               ReadTensor(message.tensor(), budget.limits(), path));
      return ValueTreeSignature::Leaf(std::move(tensor));
    }
    case v1::ValueTreeSignature::kValue: {
      CIPHERD_ASSIGN_OR_RETURN(ValueSignature value,
                               ReadValue(message.value(), budget.limits(), path));
      return ValueTreeSignature::Leaf(std::move(value));
    }
    case v1::ValueTreeSignature::kList:
    case v1::ValueTreeSignature::kTuple: {
      const auto& sequence = message.has_list() ? message.list() : message.tuple();
      std::vector<ValueTreeSignature> children;
      for (int i = 0; i < sequence.children_size(); ++i) {
        CIPHERD_ASSIGN_OR_RETURN(ValueTreeSignature child,
                                 ReadTree(sequence.children(i), nesting + 1, budget,
                                          value::ChildPath(path, static_cast<size_t>(i))));
        children.push_back(std::move(child));
      }
      return message.has_list() ? ValueTreeSignature::List(std::move(children))
                                : ValueTreeSignature::Tuple(std::move(children));
    }
    case v1::ValueTreeSignature::kDict: {
      std::vector<std::pair<std::string, ValueTreeSignature>> entries;
      for (int i = 0; i < message.dict().entries_size(); ++i) {
        const v1::ValueTreeSignature::Entry& entry = message.dict().entries(i);
        CIPHERD_RETURN_IF_ERROR(internal::CheckName(entry.key(), budget.limits().max_name_bytes,
                                                    absl::StrCat(path, ".keys[", i, "]")));
        CIPHERD_ASSIGN_OR_RETURN(
            ValueTreeSignature child,
            ReadTree(entry.child(), nesting + 1, budget, value::ChildPath(path, entry.key())));
        entries.emplace_back(entry.key(), std::move(child));
      }
      absl::StatusOr<ValueTreeSignature> dict = ValueTreeSignature::Dict(std::move(entries));
      if (!dict.ok()) {
        return internal::WithPathOf(dict.status(), v1::ERROR_REASON_MALFORMED_VALUE, path);
      }
      return dict;
    }
    case v1::ValueTreeSignature::NODE_NOT_SET:
      break;
  }
  return Mismatch(path, "", "a tensor, a value, or a list, tuple or dict of them", "none");
}

}  // namespace

absl::Status EncodeSignature(const ValueTreeSignature& signature, std::string_view path,
                             v1::ValueTreeSignature* out) {
  out->Clear();
  return WriteTree(signature, path, out);
}

absl::StatusOr<ValueTreeSignature> DecodeSignature(const v1::ValueTreeSignature& message,
                                                   const WireLimits& limits,
                                                   std::string_view path) {
  internal::StructureBudget budget(limits, limits.max_request_bytes);
  return ReadTree(message, 0, budget, std::string(path));
}

void DescribeAs(const v1::ValueSignature& signature, std::span<const int64_t> shape,
                uint64_t byte_count, v1::ExactValue* out) {
  out->set_type(signature.type());
  out->set_schema_version(signature.schema_version());
  if (signature.has_context_id()) out->set_context_id(signature.context_id());
  *out->mutable_metadata() = signature.metadata();
  for (const auto& named_signature : signature.tensors()) {
    v1::NamedTensor* named = out->add_tensors();
    named->set_name(named_signature.name());
    v1::Tensor* tensor = named->mutable_tensor();
    tensor->set_dtype(named_signature.tensor().dtype());
    tensor->mutable_shape()->Add(shape.begin(), shape.end());
    tensor->set_encoding(v1::ENCODING_CANONICAL);
    tensor->set_byte_count(byte_count);
  }
}

}  // namespace cipherd::codec
