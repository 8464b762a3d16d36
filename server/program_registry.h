// The programs that this daemon serves, with what the wire needs of them worked out once.
//
//   CIPHERD_ASSIGN_OR_RETURN(ProgramRegistry registry,
//                            ProgramRegistry::Load(directory, security_policy));
//   if (const RegisteredProgram* program = registry.Find("fashion_mlp")) ...
//
// Immutable after Load; thread-safe.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "cipherd/v1/evaluation.pb.h"
#include "core/ckks/context_parameters.h"
#include "proto/codec/known_context.h"
#include "server/engine/interpreted_program.h"

namespace cipherd::server {

struct RegisteredProgram {
  std::shared_ptr<const engine::InterpretedProgram> program;
  codec::KnownContextPtr context;
  // Complete but for summary.ready.
  v1::GetProgramResponse description;
};

class ProgramRegistry {
 public:
  // Reads and checks every program of `directory`. The first one that cannot be used is the error:
  // a daemon does not start with half of its programs. InvalidArgument where there is none.
  static absl::StatusOr<ProgramRegistry> Load(const std::string& directory,
                                              ckks::SecurityPolicy policy);

  // Null for an unknown name.
  const RegisteredProgram* Find(std::string_view name) const;
  const std::map<std::string, RegisteredProgram, std::less<>>& programs() const {
    return programs_;
  }
  // Those that key sets may belong to: each context of a program once.
  const std::vector<codec::KnownContextPtr>& contexts() const { return contexts_; }

 private:
  absl::Status Add(std::shared_ptr<const programs::CheckedProgram> checked,
                   ckks::SecurityPolicy policy);
  absl::StatusOr<codec::KnownContextPtr> ContextOf(const programs::CheckedProgram& checked,
                                                   ckks::SecurityPolicy policy);

  std::map<std::string, RegisteredProgram, std::less<>> programs_;
  std::vector<codec::KnownContextPtr> contexts_;
};

}  // namespace cipherd::server
