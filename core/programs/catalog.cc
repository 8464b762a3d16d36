#include "core/programs/catalog.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/refusal.h"
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

// Both parts of `place` lead nowhere but into the catalog's directory.
bool IsPlain(const ProgramPlace& place) {
  return IsPlainFileName(place.name) &&
         (place.version_directory.empty() || IsPlainFileName(place.version_directory));
}

// Names of the directories in `directory` that hold a program.textproto.
std::vector<std::string> ProgramDirectoriesIn(const std::filesystem::path& directory,
                                              std::error_code& error) {
  std::vector<std::string> names;
  std::filesystem::directory_iterator entries(directory, error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    std::error_code absent;
    if (std::filesystem::exists(entries->path() / kProgramFile, absent)) {
      names.push_back(entries->path().filename().string());
    }
  }
  return names;
}

}  // namespace

ProgramCatalog::ProgramCatalog(std::string directory, ProgramTextParser parse,
                               CatalogOptions options)
    : directory_(std::move(directory)), parse_(std::move(parse)), options_(options) {}

std::string ProgramPlace::path() const {
  return version_directory.empty() ? name : absl::StrCat(name, "/", version_directory);
}

absl::StatusOr<std::vector<ProgramPlace>> ProgramCatalog::List() const {
  std::error_code error;
  std::filesystem::directory_iterator entries(directory_, error);
  std::vector<ProgramPlace> places;
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    std::error_code absent;
    if (std::filesystem::exists(entries->path() / kProgramFile, absent)) {
      places.push_back({name, ""});
    }
    // What is no directory holds no versions.
    for (const std::string& version : ProgramDirectoriesIn(entries->path(), absent)) {
      if (!version.starts_with('.')) places.push_back({name, version});
    }
  }
  if (error) {
    const std::string message = absl::StrCat(directory_, ": ", error.message());
    return error == std::errc::no_such_file_or_directory ? absl::NotFoundError(message)
                                                         : absl::InternalError(message);
  }
  std::sort(places.begin(), places.end());
  return places;
}

absl::StatusOr<std::shared_ptr<const CheckedProgram>> ProgramCatalog::Load(
    const ProgramPlace& place) const {
  if (!IsPlain(place)) {
    return absl::NotFoundError(
        absl::StrCat("program '", absl::CHexEscape(place.path()), "': not in ", directory_));
  }
  const std::filesystem::path directory = std::filesystem::path(directory_) / place.path();
  const std::string path = (directory / kProgramFile).string();
  CIPHERD_ASSIGN_OR_RETURN(const std::string text, ReadTextFile(path, options_.max_text_bytes));
  CIPHERD_ASSIGN_OR_RETURN(ProgramSpec spec, parse_(text, path));
  if (spec.name != place.name) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": name: expected '", place.name,
                                                   "', that of its directory, got '",
                                                   absl::CHexEscape(spec.name), "'"));
  }
  // As text: "04" and "v4" are no names of version 4.
  if (!place.version_directory.empty() && place.version_directory != absl::StrCat(spec.version)) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": version: expected '", absl::CHexEscape(place.version_directory),
                     "', that of its directory, got '", spec.version, "'"));
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
  if (!program.ok()) return base::At(path, program.status());
  return program;
}

absl::StatusOr<std::optional<std::string>> ProgramCatalog::ReadFileOf(const ProgramPlace& place,
                                                                      std::string_view file) const {
  if (!IsPlain(place) || !IsPlainFileName(file)) return std::nullopt;
  const std::filesystem::path path = std::filesystem::path(directory_) / place.path() / file;
  absl::StatusOr<std::string> text = ReadTextFile(path.string(), options_.max_text_bytes);
  if (absl::IsNotFound(text.status())) return std::nullopt;
  return text;
}

std::string ProgramCatalog::FingerprintOf(const ProgramPlace& place) const {
  std::vector<std::string> files;
  std::error_code error;
  std::filesystem::directory_iterator entries(std::filesystem::path(directory_) / place.path(),
                                              error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    std::error_code gone;
    // Versions of their own.
    if (entries->is_directory(gone)) continue;
    const auto time = entries->last_write_time(gone).time_since_epoch().count();
    const auto bytes = entries->is_regular_file(gone) ? entries->file_size(gone) : 0;
    files.push_back(absl::StrCat(entries->path().filename().string(), " ", bytes, " ", time));
  }
  std::sort(files.begin(), files.end());
  return absl::StrJoin(files, "\n");
}

}  // namespace cipherd::programs
