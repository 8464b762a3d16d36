// The versions of programs that this daemon serves, with what the wire needs of them worked out
// once, and what their directory holds by now.
//
//   CIPHERD_ASSIGN_OR_RETURN(const auto registry,
//                            ProgramRegistry::Load(directory, security_policy, default_serving));
//   for (const RegisteredProgramPtr& version : registry->Versions("fashion_mlp")) ...
//
//   CIPHERD_ASSIGN_OR_RETURN(const ProgramRegistry::Changes changes, registry->Rescan());
//   registry->Set(*changes.changed[0].program);            // once the engine serves it
//
// A version is known by where it was read from (programs::ProgramPlace): what is there now takes
// its place, under whatever number. No two have one name and number.
//
// An entry is immutable and stays with whoever holds it. Thread-safe; one thread at a time rescans.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "cipherd/v1/evaluation.pb.h"
#include "core/ckks/context_parameters.h"
#include "core/programs/catalog.h"
#include "proto/codec/known_context.h"
#include "server/engine/interpreted_program.h"
#include "server/engine/serving_settings.h"

namespace cipherd::server {

struct RegisteredProgram {
  std::shared_ptr<const engine::InterpretedProgram> program;
  engine::ServingSettings serving;
  codec::KnownContextPtr context;
  // Complete but for summary.ready.
  v1::GetProgramResponse description;
  // What it was read from, and how that looked.
  programs::ProgramPlace place;
  std::string fingerprint;

  const engine::ProgramInfo& info() const { return program->info(); }
};
using RegisteredProgramPtr = std::shared_ptr<const RegisteredProgram>;

class ProgramRegistry {
 public:
  // Reads and checks every program of `directory`. The first one that cannot be used is the error:
  // a daemon does not start with half of its programs. InvalidArgument where there is none.
  // `default_serving`: of programs whose serving.textproto does not say otherwise.
  static absl::StatusOr<std::unique_ptr<ProgramRegistry>> Load(
      const std::string& directory, ckks::SecurityPolicy policy,
      const engine::ServingSettings& default_serving);

  // The newest first; none for an unknown name.
  std::vector<RegisteredProgramPtr> Versions(std::string_view name) const ABSL_LOCKS_EXCLUDED(mu_);
  // By name, then version.
  std::vector<RegisteredProgramPtr> programs() const ABSL_LOCKS_EXCLUDED(mu_);
  // Those that key sets may belong to: each context of a program once.
  std::vector<codec::KnownContextPtr> contexts() const ABSL_LOCKS_EXCLUDED(mu_);

  struct Changes {
    struct Entry {
      programs::ProgramPlace place;
      // Or why it cannot be used.
      absl::StatusOr<RegisteredProgramPtr> program;
    };
    // New versions, and those whose files have changed.
    std::vector<Entry> changed;
    // Their places hold no program any more.
    std::vector<RegisteredProgramPtr> gone;
  };
  // Compares the directory with what is here, which stays as it is. Where two places hold one
  // version, that which was here first is used, and the other is InvalidArgument naming both.
  absl::StatusOr<Changes> Rescan() const ABSL_LOCKS_EXCLUDED(mu_);

  // Those that `program` takes the place of: read from where it was, or of its name and version.
  std::vector<RegisteredProgramPtr> ReplacedBy(const RegisteredProgram& program) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // Puts `program` in the place of those.
  void Set(RegisteredProgramPtr program) ABSL_LOCKS_EXCLUDED(mu_);
  // False where it is not here (any more).
  bool Remove(const RegisteredProgramPtr& program) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  ProgramRegistry(const std::string& directory, ckks::SecurityPolicy policy,
                  const engine::ServingSettings& default_serving);

  absl::StatusOr<RegisteredProgramPtr> Read(const programs::ProgramPlace& place,
                                            std::string fingerprint) const;
  absl::StatusOr<codec::KnownContextPtr> ContextOf(const programs::CheckedProgram& checked) const;

  const ckks::SecurityPolicy policy_;
  const engine::ServingSettings default_serving_;
  const programs::ProgramCatalog catalog_;

  mutable absl::Mutex mu_;
  // By name, then version.
  std::map<std::pair<std::string, int64_t>, RegisteredProgramPtr> programs_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cipherd::server
