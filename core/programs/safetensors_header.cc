#include "core/programs/safetensors_header.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/checked_math.h"
#include "core/base/refusal.h"
#include "core/base/status_macros.h"
#include "nlohmann/json.hpp"

namespace cipherd::programs::internal {
namespace {

using base::Refuse;

using Json = nlohmann::json;

constexpr size_t kMaxNameBytes = 256;
constexpr size_t kMaxRank = 8;
constexpr const char* kMetadataKey = "__metadata__";

// Begins messages about one tensor.
std::string Named(const std::string& name) {
  return absl::StrCat("tensor '", absl::CHexEscape(name), "': ");
}

std::optional<value::DType> DTypeOf(const std::string& text) {
  if (text == "F64") return value::DType::kFloat64;
  if (text == "F32") return value::DType::kFloat32;
  if (text == "I64") return value::DType::kInt64;
  if (text == "I32") return value::DType::kInt32;
  return std::nullopt;
}

// The number, or nothing where `json` is not an integer in [0, 2^63).
std::optional<int64_t> NonNegative(const Json& json) {
  if (!json.is_number_unsigned()) return std::nullopt;
  const uint64_t number = json.get<uint64_t>();
  if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return std::nullopt;
  return static_cast<int64_t>(number);
}

// Parses an object, refusing duplicate keys, of which a JSON library silently keeps one.
absl::StatusOr<Json> ParseObject(std::string_view text) {
  std::vector<std::set<std::string>> open_objects;
  std::optional<std::string> duplicate;
  const Json::parser_callback_t watch = [&](int, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) open_objects.emplace_back();
    if (event == Json::parse_event_t::object_end) open_objects.pop_back();
    if (event == Json::parse_event_t::key) {
      std::string key = parsed.get<std::string>();
      if (!open_objects.back().insert(key).second && !duplicate) duplicate = std::move(key);
    }
    return true;
  };
  Json json = Json::parse(text.begin(), text.end(), watch, /*allow_exceptions=*/false);
  if (json.is_discarded()) return Refuse("header: expected JSON, got something else");
  if (duplicate) return Refuse("header: key '", absl::CHexEscape(*duplicate), "' is there twice");
  if (!json.is_object()) return Refuse("header: expected an object, got ", json.type_name());
  return json;
}

absl::StatusOr<SafetensorsEntry> ParseEntry(const std::string& name, const Json& json,
                                            int64_t data_bytes) {
  if (name.empty() || name.size() > kMaxNameBytes) {
    return Refuse("header: expected names of 1 to ", kMaxNameBytes, " bytes, got ", name.size());
  }
  if (!json.is_object() || json.size() != 3 || !json.contains("dtype") || !json.contains("shape") ||
      !json.contains("data_offsets")) {
    return Refuse(Named(name), "expected an object of dtype, shape and data_offsets");
  }
  const Json& dtype_json = json["dtype"];
  const Json& shape_json = json["shape"];
  const Json& offsets_json = json["data_offsets"];

  SafetensorsEntry entry;
  entry.name = name;
  if (!dtype_json.is_string()) return Refuse(Named(name), "dtype: expected a string");
  const std::string dtype_text = dtype_json.get<std::string>();
  const std::optional<value::DType> dtype = DTypeOf(dtype_text);
  if (!dtype) {
    return Refuse(Named(name), "dtype: expected F64, F32, I64 or I32, got '",
                  absl::CHexEscape(dtype_text.substr(0, 16)), "'");
  }
  entry.dtype = *dtype;

  if (!shape_json.is_array() || shape_json.size() > kMaxRank) {
    return Refuse(Named(name), "shape: expected an array of at most ", kMaxRank, " dimensions");
  }
  for (const Json& dimension_json : shape_json) {
    const std::optional<int64_t> dimension = NonNegative(dimension_json);
    if (!dimension) return Refuse(Named(name), "shape: expected integers in [0, 2^63)");
    entry.shape.push_back(*dimension);
  }
  const std::optional<int64_t> count = base::CheckedElementCount(entry.shape);
  const std::optional<uint64_t> bytes =
      count ? base::CheckedMultiply(*count, value::ElementBytes(entry.dtype)) : std::nullopt;
  if (!bytes) return Refuse(Named(name), "shape: its bytes exceed 64 bits");

  if (!offsets_json.is_array() || offsets_json.size() != 2 || !NonNegative(offsets_json[0]) ||
      !NonNegative(offsets_json[1])) {
    return Refuse(Named(name), "data_offsets: expected two integers in [0, 2^63)");
  }
  entry.begin = *NonNegative(offsets_json[0]);
  entry.end = *NonNegative(offsets_json[1]);
  if (entry.begin > entry.end || entry.end > data_bytes) {
    return Refuse(Named(name), "data_offsets: expected a range within ", data_bytes,
                  " bytes of data, got [", entry.begin, ", ", entry.end, ")");
  }
  if (static_cast<uint64_t>(entry.end - entry.begin) != *bytes) {
    return Refuse(Named(name), "data_offsets: expected ", *bytes, " bytes for the shape, got ",
                  entry.end - entry.begin);
  }
  return entry;
}

// `entries` are sorted by their data.
absl::Status CheckCoverage(const std::vector<SafetensorsEntry>& entries, int64_t data_bytes) {
  int64_t covered = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin != covered) {
      return Refuse(Named(entry.name), "data_offsets: expected to begin at ", covered,
                    ", where the tensor before it ends, got ", entry.begin);
    }
    covered = entry.end;
  }
  if (covered != data_bytes) {
    return Refuse("expected tensors that cover ", data_bytes, " bytes of data, got ", covered);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<SafetensorsEntry>> ParseSafetensorsHeader(std::string_view header,
                                                                     int64_t data_bytes) {
  CIPHERD_ASSIGN_OR_RETURN(const Json json, ParseObject(header));
  std::vector<SafetensorsEntry> entries;
  for (const auto& [name, entry_json] : json.items()) {
    if (name == kMetadataKey) continue;
    CIPHERD_ASSIGN_OR_RETURN(SafetensorsEntry entry, ParseEntry(name, entry_json, data_bytes));
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(),
            [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
              return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
            });
  CIPHERD_RETURN_IF_ERROR(CheckCoverage(entries, data_bytes));
  return entries;
}

}  // namespace cipherd::programs::internal
