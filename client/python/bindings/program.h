// A program as the daemon described it, or a file did.
#pragma once

#include <nanobind/nanobind.h>

#include "client/files/program_file.h"
#include "core/ckks/context_parameters.h"

namespace cipherd::python {

struct Program {
  client::StoredProgram stored;
  ckks::SecurityPolicy policy;

  const client::ProgramDescription& description() const { return *stored.program; }
};

inline ckks::SecurityPolicy PolicyOf(bool allow_insecure_contexts) {
  return allow_insecure_contexts ? ckks::SecurityPolicy::kAllowInsecure
                                 : ckks::SecurityPolicy::k128BitClassical;
}

void BindProgram(nanobind::module_& module);

}  // namespace cipherd::python
