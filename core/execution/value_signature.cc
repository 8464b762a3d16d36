#include "core/execution/value_signature.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status_macros.h"
#include "core/execution/mismatch.h"
#include "core/value/value_tree.h"

namespace cipherd::execution {
namespace {

using value::MetadataField;

std::string NamesOf(const std::vector<std::pair<std::string, TensorSignature>>& tensors) {
  auto name = [](std::string* out, const auto& entry) {
    absl::StrAppend(out, "'", entry.first, "'");
  };
  return absl::StrCat("[", absl::StrJoin(tensors, ", ", name), "]");
}

// The first key, in order, whose fields differ.
absl::Status CheckSameMetadata(const std::vector<std::pair<std::string, MetadataField>>& expected,
                               const std::vector<std::pair<std::string, MetadataField>>& actual,
                               std::string_view path) {
  std::map<std::string_view, std::pair<const MetadataField*, const MetadataField*>> fields;
  for (const auto& [key, field] : expected) fields[key].first = &field;
  for (const auto& [key, field] : actual) fields[key].second = &field;
  auto text = [](const MetadataField* field) {
    return field == nullptr ? std::string("nothing") : value::FieldToString(*field);
  };
  for (const auto& [key, sides] : fields) {
    const auto& [left, right] = sides;
    if (left != nullptr && right != nullptr && value::SameField(*left, *right)) continue;
    return Mismatch(path, absl::StrCat(".", std::string(key)), text(left), text(right));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ValueSignature> ValueSignature::FromValue(const value::ExactValue& value,
                                                         std::string_view path) {
  CIPHERD_RETURN_IF_ERROR(value::CheckSupported(value, path));
  ValueSignature signature;
  signature.type_name = std::string(value::ToString(value.type));
  signature.schema_version = value.schema_version;
  signature.context_id = value.context_id;
  for (auto& [key, field] : value.metadata.ToFields()) signature.metadata.emplace_back(key, field);
  for (const auto& [name, tensor] : value.tensors) {
    signature.tensors.emplace_back(name, TensorSignature::FromTensor(tensor));
  }
  std::sort(signature.tensors.begin(), signature.tensors.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  return signature;
}

bool ValueSignature::operator==(const ValueSignature& other) const {
  return type_name == other.type_name && schema_version == other.schema_version &&
         context_id == other.context_id && tensors == other.tensors &&
         std::equal(metadata.begin(), metadata.end(), other.metadata.begin(), other.metadata.end(),
                    [](const auto& a, const auto& b) {
                      return a.first == b.first && value::SameField(a.second, b.second);
                    });
}

absl::Status ValueSignature::CheckSame(const ValueSignature& actual, std::string_view path) const {
  if (*this == actual) return absl::OkStatus();
  if (type_name != actual.type_name) return Mismatch(path, ".type", type_name, actual.type_name);
  if (schema_version != actual.schema_version) {
    return Mismatch(path, ".schema_version", std::to_string(schema_version),
                    std::to_string(actual.schema_version));
  }
  if (context_id != actual.context_id) {
    return Mismatch(path, ".context_id", context_id.value_or("nothing"),
                    actual.context_id.value_or("nothing"));
  }
  CIPHERD_RETURN_IF_ERROR(CheckSameMetadata(metadata, actual.metadata, path));
  const std::string names = NamesOf(tensors);
  const std::string actual_names = NamesOf(actual.tensors);
  if (names != actual_names) return Mismatch(path, ".tensors", names, actual_names);
  for (size_t i = 0; i < tensors.size(); ++i) {
    CIPHERD_RETURN_IF_ERROR(tensors[i].second.CheckSame(
        actual.tensors[i].second, absl::StrCat(std::string(path), ".", tensors[i].first)));
  }
  return Mismatch(path, "", ToString(), actual.ToString());
}

std::string ValueSignature::ToString(bool multi_line, int indent) const {
  std::vector<std::string> fields;
  fields.push_back(absl::StrCat("schema_version=", schema_version));
  if (context_id.has_value()) fields.push_back(absl::StrCat("context_id=", *context_id));
  for (const auto& [key, field] : metadata) {
    fields.push_back(absl::StrCat(key, "=", value::FieldToString(field)));
  }
  for (const auto& [name, tensor] : tensors) {
    fields.push_back(absl::StrCat(name, ": ", tensor.ToString()));
  }
  if (!multi_line) return absl::StrCat(type_name, "{", absl::StrJoin(fields, ", "), "}");
  const std::string margin(static_cast<size_t>(indent), ' ');
  return absl::StrCat(type_name, "{\n", margin, "  ",
                      absl::StrJoin(fields, absl::StrCat(",\n", margin, "  ")), "\n", margin, "}");
}

}  // namespace cipherd::execution
