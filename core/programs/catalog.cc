#include "core/programs/catalog.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/programs/input_file.h"
#include "core/programs/safetensors.h"

namespace cipherd::programs {
namespace {

constexpr const char* kProgramFile = "program.textproto";

// A name of one file in the directory itself: no way out of it.
bool IsPlainFileName(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos;
}

absl::Status AtPath(const std::string& path, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(path, ": ", std::string(status.message())));
}

}  // namespace

ProgramCatalog::ProgramCatalog(std::string directory, ProgramTextParser parse,
                               CatalogOptions options)
    : directory_(std::move(directory)), parse_(std::move(parse)), options_(options) {}

absl::StatusOr<std::vector<std::string>> ProgramCatalog::List() const {
  std::error_code error;
  std::filesystem::directory_iterator entries(directory_, error);
  std::vector<std::string> names;
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    std::error_code absent;
    if (std::filesystem::exists(entries->path() / kProgramFile, absent)) {
      names.push_back(entries->path().filename().string());
    }
  }
  if (error) {
    const std::string message = absl::StrCat(directory_, ": ", error.message());
    return error == std::errc::no_such_file_or_directory ? absl::NotFoundError(message)
                                                         : absl::InternalError(message);
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<std::shared_ptr<const CheckedProgram>> ProgramCatalog::Load(
    std::string_view name) const {
  if (!IsPlainFileName(name)) {
    return absl::NotFoundError(
        absl::StrCat("program '", absl::CHexEscape(std::string(name)), "': not in ", directory_));
  }
  const std::filesystem::path directory = std::filesystem::path(directory_) / name;
  const std::string path = (directory / kProgramFile).string();
  CIPHERD_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path, options_.max_text_bytes));
  CIPHERD_ASSIGN_OR_RETURN(ProgramSpec spec, parse_(text, path));
  if (spec.name != name) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": name: expected '", std::string(name),
                                                   "', that of its directory, got '",
                                                   absl::CHexEscape(spec.name), "'"));
  }
  Constants constants;
  if (!spec.constants_file.empty()) {
    if (!IsPlainFileName(spec.constants_file)) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": constants_file: expected the name of a file beside it, got '",
                       absl::CHexEscape(spec.constants_file), "'"));
    }
    CIPHERD_ASSIGN_OR_RETURN(constants, ReadSafetensors((directory / spec.constants_file).string(),
                                                        options_.max_constants_bytes));
  }
  absl::StatusOr<std::shared_ptr<const CheckedProgram>> program =
      CheckProgram(std::move(spec), std::move(constants), options_.security);
  if (!program.ok()) return AtPath(path, program.status());
  return program;
}

absl::StatusOr<std::optional<std::string>> ProgramCatalog::ReadFileOf(std::string_view name,
                                                                      std::string_view file) const {
  if (!IsPlainFileName(name) || !IsPlainFileName(file)) return std::nullopt;
  const std::filesystem::path path = std::filesystem::path(directory_) / name / file;
  absl::StatusOr<std::string> text = ReadTextFile(path.string(), options_.max_text_bytes);
  if (absl::IsNotFound(text.status())) return std::nullopt;
  return text;
}

absl::StatusOr<std::vector<ProgramCatalog::Entry>> ProgramCatalog::LoadAll() const {
  CIPHERD_ASSIGN_OR_RETURN(const std::vector<std::string> names, List());
  std::vector<Entry> entries;
  for (const std::string& name : names) entries.push_back({name, Load(name)});
  return entries;
}

}  // namespace cipherd::programs
