#include "proto/codec/tree_encoder.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "proto/codec/context_codec.h"
#include "proto/codec/enum_codec.h"
#include "proto/codec/metadata_codec.h"
#include "proto/codec/mismatch.h"
#include "proto/codec/value_admission.h"

namespace cipherd::codec {
namespace {

using value::ValueTree;

absl::Status WriteTensor(const value::Tensor& tensor, std::string_view path, v1::Tensor* out,
                         std::vector<value::Tensor>& payload) {
  if (!tensor.placement().is_host()) {
    return internal::Mismatch(path, "", "a tensor on the host",
                              absl::StrCat("one on ", tensor.placement().ToString()));
  }
  if (!tensor.is_contiguous()) {
    return internal::Mismatch(path, ".strides",
                              internal::ListOf(value::ContiguousStrides(tensor.shape())),
                              internal::ListOf(tensor.strides()));
  }
  out->set_dtype(internal::ToWire(tensor.dtype()));
  out->mutable_shape()->Add(tensor.shape().begin(), tensor.shape().end());
  out->set_encoding(v1::ENCODING_CANONICAL);
  out->set_byte_count(static_cast<uint64_t>(tensor.bytes()));
  out->set_requires_grad(tensor.requires_grad());
  payload.push_back(tensor);
  return absl::OkStatus();
}

absl::Status WriteValue(const value::ExactValue& value, std::string_view path, v1::ExactValue* out,
                        std::vector<value::Tensor>& payload) {
  CIPHERD_RETURN_IF_ERROR(RefuseSecretKey(internal::ToWire(value.type), path));
  out->set_type(internal::ToWire(value.type));
  out->set_schema_version(value.schema_version);
  if (value.context_id.has_value()) {
    CIPHERD_ASSIGN_OR_RETURN(
        *out->mutable_context_id(),
        EncodeDigest(*value.context_id, absl::StrCat(std::string(path), ".context_id")));
  }
  internal::EncodeMetadata(value.metadata, out->mutable_metadata());
  for (const auto& [name, tensor] : value.tensors) {
    v1::NamedTensor* named = out->add_tensors();
    named->set_name(name);
    CIPHERD_RETURN_IF_ERROR(WriteTensor(tensor, absl::StrCat(std::string(path), ".", name),
                                        named->mutable_tensor(), payload));
  }
  return absl::OkStatus();
}

absl::Status WriteTree(const ValueTree& tree, std::string_view path, v1::ValueTree* out,
                       std::vector<value::Tensor>& payload) {
  switch (tree.kind()) {
    case value::TreeKind::kTensor:
      return WriteTensor(tree.tensor(), path, out->mutable_tensor(), payload);
    case value::TreeKind::kValue:
      return WriteValue(tree.exact_value(), path, out->mutable_value(), payload);
    case value::TreeKind::kList:
    case value::TreeKind::kTuple: {
      v1::ValueTree::Sequence* sequence =
          tree.kind() == value::TreeKind::kList ? out->mutable_list() : out->mutable_tuple();
      for (size_t i = 0; i < tree.children().size(); ++i) {
        CIPHERD_RETURN_IF_ERROR(
            WriteTree(tree[i], value::ChildPath(path, i), sequence->add_children(), payload));
      }
      return absl::OkStatus();
    }
    case value::TreeKind::kDict: {
      v1::ValueTree::Dict* dict = out->mutable_dict();
      for (size_t i = 0; i < tree.children().size(); ++i) {
        v1::ValueTree::Entry* entry = dict->add_entries();
        entry->set_key(tree.keys()[i]);
        CIPHERD_RETURN_IF_ERROR(WriteTree(tree[i], value::ChildPath(path, tree.keys()[i]),
                                          entry->mutable_child(), payload));
      }
      return absl::OkStatus();
    }
    case value::TreeKind::kNone:
    case value::TreeKind::kOpaque:
      break;
  }
  return internal::Mismatch(path, "", "a tensor, a value, or a list, tuple or dict of them",
                            tree.kind() == value::TreeKind::kOpaque
                                ? tree.opaque_description()
                                : std::string(value::ToString(tree.kind())));
}

}  // namespace

absl::StatusOr<PayloadSource> EncodeTree(const ValueTree& tree, std::string_view path,
                                         v1::ValueTree* out) {
  std::vector<value::Tensor> payload;
  out->Clear();
  CIPHERD_RETURN_IF_ERROR(WriteTree(tree, path, out, payload));
  return PayloadSource(std::move(payload));
}

absl::StatusOr<PayloadSource> EncodeValue(const value::ExactValue& value, std::string_view path,
                                          v1::ExactValue* out) {
  std::vector<value::Tensor> payload;
  out->Clear();
  CIPHERD_RETURN_IF_ERROR(WriteValue(value, path, out, payload));
  return PayloadSource(std::move(payload));
}

}  // namespace cipherd::codec
