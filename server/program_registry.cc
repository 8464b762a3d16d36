#include "server/program_registry.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/programs/catalog.h"
#include "proto/codec/context_codec.h"
#include "proto/codec/program_codec.h"
#include "proto/codec/signature_codec.h"

namespace cipherd::server {
namespace {

absl::StatusOr<v1::GetProgramResponse> Describe(const engine::InterpretedProgram& program,
                                                const codec::KnownContext& context) {
  const engine::ProgramInfo& info = program.info();
  const programs::CheckedProgram& checked = program.checked();
  v1::GetProgramResponse response;
  response.mutable_summary()->set_name(info.name);
  response.mutable_summary()->set_version(static_cast<uint32_t>(info.version));
  response.mutable_summary()->set_description(info.description);
  codec::EncodeContext(context.parameters(), response.mutable_context());
  response.set_context_id(context.id_bytes());
  CIPHERD_RETURN_IF_ERROR(
      codec::EncodeSignature(info.input_signature, "inputs", response.mutable_input_signature()));
  CIPHERD_RETURN_IF_ERROR(codec::EncodeSignature(info.output_signature, "outputs",
                                                 response.mutable_output_signature()));
  for (const programs::ProgramInput& input : checked.spec.inputs) {
    CIPHERD_RETURN_IF_ERROR(codec::EncodeProgramInput(input, "inputs", response.add_inputs()));
  }
  for (const programs::ProgramOutput& output : checked.spec.outputs) {
    CIPHERD_RETURN_IF_ERROR(codec::EncodeProgramOutput(output, "outputs", response.add_outputs()));
  }
  for (const ckks::KeyId& id : info.keys.ids()) {
    codec::EncodeKeyId(id, response.add_required_keys());
  }
  response.set_key_bytes(static_cast<uint64_t>(checked.key_bytes()));
  response.set_input_bytes(static_cast<uint64_t>(info.input_bytes));
  response.set_output_bytes(static_cast<uint64_t>(info.output_bytes));
  return response;
}

}  // namespace

absl::StatusOr<ProgramRegistry> ProgramRegistry::Load(const std::string& directory,
                                                      ckks::SecurityPolicy policy) {
  const programs::ProgramCatalog catalog(directory, codec::ParseProgramText, {.security = policy});
  CIPHERD_ASSIGN_OR_RETURN(const std::vector<std::string> names, catalog.List());
  ProgramRegistry registry;
  for (const std::string& name : names) {
    CIPHERD_ASSIGN_OR_RETURN(std::shared_ptr<const programs::CheckedProgram> checked,
                             catalog.Load(name));
    CIPHERD_RETURN_IF_ERROR(registry.Add(std::move(checked), policy));
  }
  if (registry.programs_.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("programs: no directory with a program.textproto in ", directory));
  }
  return registry;
}

absl::Status ProgramRegistry::Add(std::shared_ptr<const programs::CheckedProgram> checked,
                                  ckks::SecurityPolicy policy) {
  RegisteredProgram entry;
  CIPHERD_ASSIGN_OR_RETURN(entry.context, ContextOf(*checked, policy));
  CIPHERD_ASSIGN_OR_RETURN(entry.program, engine::InterpretedProgram::Create(std::move(checked)));
  CIPHERD_ASSIGN_OR_RETURN(entry.description, Describe(*entry.program, *entry.context));
  programs_.emplace(entry.program->info().name, std::move(entry));
  return absl::OkStatus();
}

absl::StatusOr<codec::KnownContextPtr> ProgramRegistry::ContextOf(
    const programs::CheckedProgram& checked, ckks::SecurityPolicy policy) {
  for (const codec::KnownContextPtr& context : contexts_) {
    if (context->id() == checked.context->id()) return context;
  }
  CIPHERD_ASSIGN_OR_RETURN(codec::KnownContextPtr context,
                           codec::KnownContext::Create(checked.context->parameters(), policy));
  contexts_.push_back(context);
  return context;
}

const RegisteredProgram* ProgramRegistry::Find(std::string_view name) const {
  const auto it = programs_.find(name);
  return it == programs_.end() ? nullptr : &it->second;
}

}  // namespace cipherd::server
