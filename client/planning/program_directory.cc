#include "client/planning/program_directory.h"

#include <filesystem>
#include <span>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/atomic_file.h"
#include "core/base/status_macros.h"
#include "core/programs/safetensors_writer.h"
#include "proto/codec/program_codec.h"

namespace cipherd::client {
namespace {

namespace fs = std::filesystem;

absl::Status FileError(const fs::path& path, const char* doing, const std::error_code& error) {
  return absl::UnavailableError(
      absl::StrCat("'", path.string(), "': ", doing, ": ", error.message()));
}

absl::Status WriteText(const fs::path& path, const std::string& text) {
  CIPHERD_ASSIGN_OR_RETURN(base::AtomicFile file, base::AtomicFile::Create(path.string(), 0644));
  CIPHERD_RETURN_IF_ERROR(file.Write({reinterpret_cast<const uint8_t*>(text.data()), text.size()}));
  return std::move(file).Commit(base::AtomicFile::Existing::kReplace);
}

absl::Status WriteFiles(const fs::path& directory, const programs::CheckedProgram& program) {
  CIPHERD_ASSIGN_OR_RETURN(const std::string text, codec::PrintProgramText(program.spec));
  CIPHERD_RETURN_IF_ERROR(WriteText(directory / "program.textproto", text));
  if (program.spec.constants_file.empty()) return absl::OkStatus();
  return programs::WriteSafetensors((directory / program.spec.constants_file).string(),
                                    *program.constants);
}

// Without a slash at the end.
fs::path PlaceOf(const std::string& directory) {
  return fs::absolute(fs::path(directory) / "").parent_path();
}

}  // namespace

absl::Status CheckProgramDirectory(const std::string& directory, std::string_view program,
                                   int64_t version) {
  const fs::path place = PlaceOf(directory);
  const std::string name = place.filename().string();
  if (name != program && name != absl::StrCat(version)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", directory, "': expected a directory called '", std::string(program),
                     "' or '", version, "', as the program or its version, got '", name, "'"));
  }
  std::error_code error;
  if (fs::exists(place, error)) {
    return absl::AlreadyExistsError(
        absl::StrCat("'", directory,
                     "': expected nothing of that name; remove it, or give the model another "
                     "version, and write that to a directory of programs/",
                     std::string(program), " that is called as the version"));
  }
  return absl::OkStatus();
}

absl::Status WriteProgramDirectory(const std::string& directory,
                                   const programs::CheckedProgram& program) {
  CIPHERD_RETURN_IF_ERROR(
      CheckProgramDirectory(directory, program.spec.name, program.spec.version));
  const fs::path place = PlaceOf(directory);
  const std::string name = place.filename().string();
  std::error_code error;
  fs::create_directories(place.parent_path(), error);
  if (error) return FileError(place.parent_path(), "create", error);
  const fs::path draft = place.parent_path() / absl::StrCat(".", name, ".draft");
  fs::remove_all(draft, error);
  if (!fs::create_directory(draft, error)) return FileError(draft, "create", error);
  absl::Status written = WriteFiles(draft, program);
  if (written.ok()) {
    fs::rename(draft, place, error);
    if (error) written = FileError(place, "rename", error);
  }
  if (!written.ok()) fs::remove_all(draft, error);
  return written;
}

}  // namespace cipherd::client
