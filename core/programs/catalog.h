// Programs on disk: a directory with one directory a program.
//
//   ProgramCatalog catalog("/etc/cipherd/programs", codec::ParseProgramText, {});
//   CIPHERD_ASSIGN_OR_RETURN(std::vector<std::string> names, catalog.List());
//   CIPHERD_ASSIGN_OR_RETURN(auto program, catalog.Load("fashion_mlp"));
//
// A program's directory holds program.textproto and the safetensors file that it names, and is
// called what the program is called. Files are read anew by every call. Thread-safe.
#pragma once

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

class ProgramCatalog {
 public:
  ProgramCatalog(std::string directory, ProgramTextParser parse, CatalogOptions options);

  const std::string& directory() const { return directory_; }

  // Names of the directories that hold a program.textproto, sorted. Whether they can be loaded is
  // not looked at. NotFound where the catalog's directory is missing.
  absl::StatusOr<std::vector<std::string>> List() const;

  // Parses, reads constants and checks. NotFound for an unknown name; else the error of the stage
  // that failed, naming the file.
  absl::StatusOr<std::shared_ptr<const CheckedProgram>> Load(std::string_view name) const;

  // The text of another file of the program's directory; nothing where there is none. Errors as
  // InputFile::Open.
  absl::StatusOr<std::optional<std::string>> ReadFileOf(std::string_view name,
                                                        std::string_view file) const;

  // Every program of List(), each with its own result: one that is broken does not hide the others.
  struct Entry {
    std::string name;
    absl::StatusOr<std::shared_ptr<const CheckedProgram>> program;
  };
  absl::StatusOr<std::vector<Entry>> LoadAll() const;

 private:
  const std::string directory_;
  const ProgramTextParser parse_;
  const CatalogOptions options_;
};

}  // namespace cipherd::programs
