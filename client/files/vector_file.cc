#include "client/files/vector_file.h"

#include <fstream>
#include <span>
#include <sstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"

namespace cipherd::client {
namespace {

absl::Status Refused(std::string_view path, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("'", std::string(path), "': ", what));
}

}  // namespace

absl::StatusOr<Vectors> ReadVectors(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot open '", path, "'"));
  std::ostringstream content;
  content << file.rdbuf();
  if (absl::EndsWith(path, ".csv")) return ParseCsv(content.str(), path);
  if (absl::EndsWith(path, ".json")) return ParseJson(content.str(), path);
  if (absl::EndsWith(path, ".npy")) return ParseNpy(content.str(), path);
  return Refused(path, "expected a name that ends in .csv, .json or .npy");
}

absl::StatusOr<Vectors> ParseCsv(std::string_view text, std::string_view path) {
  Vectors vectors;
  int line_number = 0;
  for (absl::string_view line : absl::StrSplit(absl::string_view(text.data(), text.size()), '\n')) {
    ++line_number;
    line = absl::StripAsciiWhitespace(line);
    if (line.empty() || line[0] == '#') continue;
    std::vector<double>& vector = vectors.emplace_back();
    for (absl::string_view field : absl::StrSplit(line, ',')) {
      double number = 0;
      if (!absl::SimpleAtod(field, &number)) {
        return Refused(path, absl::StrCat("line ", line_number, ", field ", vector.size() + 1,
                                          ": expected a number"));
      }
      vector.push_back(number);
    }
  }
  if (vectors.empty()) return Refused(path, "expected at least one vector, got none");
  return vectors;
}

absl::StatusOr<Vectors> ParseJson(std::string_view text, std::string_view path) {
  const nlohmann::json json =
      nlohmann::json::parse(text.begin(), text.end(), nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) return Refused(path, "is not JSON");
  if (!json.is_array() || json.empty()) return Refused(path, "expected an array of vectors");

  // Not a copy, which would go as deep as the text is nested.
  const std::span<const nlohmann::json> rows =
      json[0].is_number() ? std::span(&json, 1)
                          : std::span(json.get_ref<const nlohmann::json::array_t&>());
  Vectors vectors;
  for (const nlohmann::json& row : rows) {
    if (!row.is_array()) {
      return Refused(path, absl::StrCat("[", vectors.size(), "]: expected an array of numbers"));
    }
    std::vector<double>& vector = vectors.emplace_back();
    for (const nlohmann::json& number : row) {
      if (!number.is_number()) {
        return Refused(path, absl::StrCat("[", vectors.size() - 1, "][", vector.size(),
                                          "]: expected a number"));
      }
      vector.push_back(number.get<double>());
    }
  }
  return vectors;
}

std::string ToCsv(const Vectors& vectors) {
  std::string text;
  for (const std::vector<double>& vector : vectors) {
    for (size_t j = 0; j < vector.size(); ++j) {
      if (j > 0) text += ',';
      absl::StrAppendFormat(&text, "%.17g", vector[j]);
    }
    text += '\n';
  }
  return text;
}

}  // namespace cipherd::client
