// Programs on disk: a directory with one directory a program.
//
//   ProgramCatalog catalog("/etc/cipherd/programs", codec::ParseProgramText, {});
//   CIPHERD_ASSIGN_OR_RETURN(std::vector<ProgramPlace> places, catalog.List());
//   CIPHERD_ASSIGN_OR_RETURN(auto program, catalog.Load({.name = "fashion_mlp"}));
//
// A program's directory is called what the program is called. It holds program.textproto and the
// safetensors file that this names; beside them, or instead, a directory of its own for each of
// several versions, called by its number (fashion_mlp/4/program.textproto). Directories whose name
// begins with a dot are left alone: a version can be put together in one and then be renamed.
//
// Files are read anew by every call. Thread-safe.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/ckks/context_parameters.h"
#include "core/programs/program_checker.h"

namespace cipherd::programs {

// Turns the text of a program.textproto into a spec; `path` is for messages. proto/codec has one;
// it is passed in since core is free of protobuf.
using ProgramTextParser =
    std::function<absl::StatusOr<ProgramSpec>(std::string_view text, std::string_view path)>;

struct CatalogOptions {
  ckks::SecurityPolicy security = ckks::SecurityPolicy::k128BitClassical;
  // Of a program.textproto, and of a constants file.
  int64_t max_text_bytes = int64_t{4} << 20;
  int64_t max_constants_bytes = int64_t{1} << 30;
};

// Where a version of a program is, in the catalog's directory.
struct ProgramPlace {
  std::string name;
  // The directory in the program's own that holds it; empty where that itself does.
  std::string version_directory;

  // Relative to the catalog's directory: "fashion_mlp", "fashion_mlp/4".
  std::string path() const;
  auto operator<=>(const ProgramPlace&) const = default;
};

class ProgramCatalog {
 public:
  ProgramCatalog(std::string directory, ProgramTextParser parse, CatalogOptions options);

  const std::string& directory() const { return directory_; }

  // Every place that holds a program.textproto, sorted. Whether it can be loaded is not looked at.
  // NotFound where the catalog's directory is missing.
  absl::StatusOr<std::vector<ProgramPlace>> List() const;

  // Parses, reads constants and checks. NotFound for an unknown place; InvalidArgument where the
  // directory of a version is not called by the version in the file; else the error of the stage
  // that failed, naming the file.
  absl::StatusOr<std::shared_ptr<const CheckedProgram>> Load(const ProgramPlace& place) const;

  // The text of another file of the place; nothing where there is none. Errors as
  // InputFile::Open.
  absl::StatusOr<std::optional<std::string>> ReadFileOf(const ProgramPlace& place,
                                                        std::string_view file) const;

  // Changes whenever a file of the place does, as far as their sizes and times tell.
  std::string FingerprintOf(const ProgramPlace& place) const;

 private:
  const std::string directory_;
  const ProgramTextParser parse_;
  const CatalogOptions options_;
};

}  // namespace cipherd::programs
