// The programs that this daemon serves, with what the wire needs of them worked out once, and what
// their directory holds by now.
//
//   CIPHERD_ASSIGN_OR_RETURN(const auto registry,
//                            ProgramRegistry::Load(directory, security_policy, default_serving));
//   if (const RegisteredProgramPtr program = registry->Find("fashion_mlp")) ...
//
//   CIPHERD_ASSIGN_OR_RETURN(const ProgramRegistry::Changes changes, registry->Rescan());
//   registry->Set(*changes.changed[0].program);            // once the engine serves it
//
// An entry is immutable and stays with whoever holds it. Thread-safe; one thread at a time rescans.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
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
  // Of the files that it was read from.
  std::string fingerprint;
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

  // Null for an unknown name.
  RegisteredProgramPtr Find(std::string_view name) const ABSL_LOCKS_EXCLUDED(mu_);
  // By name.
  std::vector<RegisteredProgramPtr> programs() const ABSL_LOCKS_EXCLUDED(mu_);
  // Those that key sets may belong to: each context of a program once.
  std::vector<codec::KnownContextPtr> contexts() const ABSL_LOCKS_EXCLUDED(mu_);

  struct Changes {
    struct Entry {
      std::string name;
      // Or why it cannot be used.
      absl::StatusOr<RegisteredProgramPtr> program;
    };
    // New programs, and those whose files have changed.
    std::vector<Entry> changed;
    std::vector<std::string> gone;
  };
  // Compares the directory with what is here, which stays as it is.
  absl::StatusOr<Changes> Rescan() const ABSL_LOCKS_EXCLUDED(mu_);

  // Puts `program` in the place of its name.
  void Set(RegisteredProgramPtr program) ABSL_LOCKS_EXCLUDED(mu_);
  void Remove(std::string_view name) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  ProgramRegistry(const std::string& directory, ckks::SecurityPolicy policy,
                  const engine::ServingSettings& default_serving);

  absl::StatusOr<RegisteredProgramPtr> Read(const std::string& name, std::string fingerprint) const;
  absl::StatusOr<codec::KnownContextPtr> ContextOf(const programs::CheckedProgram& checked) const;

  const ckks::SecurityPolicy policy_;
  const engine::ServingSettings default_serving_;
  const programs::ProgramCatalog catalog_;

  mutable absl::Mutex mu_;
  std::map<std::string, RegisteredProgramPtr, std::less<>> programs_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cipherd::server
