#include "server/program_registry.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status_macros.h"
#include "proto/codec/context_codec.h"
#include "proto/codec/program_codec.h"
#include "proto/codec/serving_codec.h"
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

constexpr const char* kServingFile = "serving.textproto";

// Changes whenever one of the files of `directory` does, as far as their sizes and times tell.
std::string FingerprintOf(const std::filesystem::path& directory) {
  std::vector<std::string> files;
  std::error_code error;
  std::filesystem::directory_iterator entries(directory, error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    std::error_code gone;
    const auto time = entries->last_write_time(gone).time_since_epoch().count();
    const auto bytes = entries->is_regular_file(gone) ? entries->file_size(gone) : 0;
    files.push_back(absl::StrCat(entries->path().filename().string(), " ", bytes, " ", time));
  }
  std::sort(files.begin(), files.end());
  return absl::StrJoin(files, "\n");
}

engine::ServingSettings Merge(const programs::ServingSpec& spec, engine::ServingSettings settings) {
  const auto set_seconds = [](const std::optional<double>& from, absl::Duration& to) {
    if (from.has_value()) to = absl::Seconds(*from);
  };
  settings.instances = spec.instances.value_or(settings.instances);
  if (!spec.batch_sizes.empty()) settings.batch_sizes = spec.batch_sizes;
  settings.queue_capacity = spec.queue_capacity.value_or(settings.queue_capacity);
  settings.priority = spec.priority.value_or(settings.priority);
  settings.warmup = spec.warmup.value_or(settings.warmup);
  set_seconds(spec.max_batch_delay_seconds, settings.max_batch_delay);
  set_seconds(spec.default_timeout_seconds, settings.default_timeout);
  set_seconds(spec.longest_timeout_seconds, settings.longest_timeout);
  return settings;
}

}  // namespace

ProgramRegistry::ProgramRegistry(const std::string& directory, ckks::SecurityPolicy policy,
                                 const engine::ServingSettings& default_serving)
    : policy_(policy),
      default_serving_(default_serving),
      catalog_(directory, codec::ParseProgramText, {.security = policy}) {}

absl::StatusOr<std::unique_ptr<ProgramRegistry>> ProgramRegistry::Load(
    const std::string& directory, ckks::SecurityPolicy policy,
    const engine::ServingSettings& default_serving) {
  std::unique_ptr<ProgramRegistry> registry(
      new ProgramRegistry(directory, policy, default_serving));
  CIPHERD_ASSIGN_OR_RETURN(const Changes all, registry->Rescan());
  for (const Changes::Entry& entry : all.changed) {
    CIPHERD_RETURN_IF_ERROR(entry.program.status());
    registry->Set(*entry.program);
  }
  if (all.changed.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("programs: no directory with a program.textproto in ", directory));
  }
  return registry;
}

absl::StatusOr<ProgramRegistry::Changes> ProgramRegistry::Rescan() const {
  CIPHERD_ASSIGN_OR_RETURN(const std::vector<std::string> names, catalog_.List());
  Changes changes;
  for (const std::string& name : names) {
    // Taken before the files are read: what changes meanwhile is seen the next time.
    std::string fingerprint = FingerprintOf(std::filesystem::path(catalog_.directory()) / name);
    const RegisteredProgramPtr known = Find(name);
    if (known != nullptr && known->fingerprint == fingerprint) continue;
    changes.changed.push_back({name, Read(name, std::move(fingerprint))});
  }
  for (const RegisteredProgramPtr& program : programs()) {
    const std::string& name = program->program->info().name;
    if (!std::binary_search(names.begin(), names.end(), name)) changes.gone.push_back(name);
  }
  return changes;
}

absl::StatusOr<RegisteredProgramPtr> ProgramRegistry::Read(const std::string& name,
                                                           std::string fingerprint) const {
  CIPHERD_ASSIGN_OR_RETURN(std::shared_ptr<const programs::CheckedProgram> checked,
                           catalog_.Load(name));
  auto entry = std::make_shared<RegisteredProgram>();
  entry->fingerprint = std::move(fingerprint);
  CIPHERD_ASSIGN_OR_RETURN(const std::optional<std::string> serving_text,
                           catalog_.ReadFileOf(name, kServingFile));
  programs::ServingSpec serving;
  if (serving_text.has_value()) {
    const std::string path =
        (std::filesystem::path(catalog_.directory()) / name / kServingFile).string();
    CIPHERD_ASSIGN_OR_RETURN(serving, codec::ParseServingText(*serving_text, path));
  }
  entry->serving = Merge(serving, default_serving_);
  if (const absl::Status status = entry->serving.Validate(); !status.ok()) {
    return absl::Status(status.code(),
                        absl::StrCat(name, "/", kServingFile, ": ", std::string(status.message())));
  }
  CIPHERD_ASSIGN_OR_RETURN(entry->context, ContextOf(*checked));
  CIPHERD_ASSIGN_OR_RETURN(entry->program, engine::InterpretedProgram::Create(std::move(checked)));
  CIPHERD_ASSIGN_OR_RETURN(entry->description, Describe(*entry->program, *entry->context));
  return entry;
}

absl::StatusOr<codec::KnownContextPtr> ProgramRegistry::ContextOf(
    const programs::CheckedProgram& checked) const {
  for (const codec::KnownContextPtr& context : contexts()) {
    if (context->id() == checked.context->id()) return context;
  }
  return codec::KnownContext::Create(checked.context->parameters(), policy_);
}

RegisteredProgramPtr ProgramRegistry::Find(std::string_view name) const {
  absl::MutexLock lock(&mu_);
  const auto it = programs_.find(name);
  return it == programs_.end() ? nullptr : it->second;
}

std::vector<RegisteredProgramPtr> ProgramRegistry::programs() const {
  absl::MutexLock lock(&mu_);
  std::vector<RegisteredProgramPtr> programs;
  for (const auto& [name, program] : programs_) programs.push_back(program);
  return programs;
}

std::vector<codec::KnownContextPtr> ProgramRegistry::contexts() const {
  std::vector<codec::KnownContextPtr> contexts;
  for (const RegisteredProgramPtr& program : programs()) {
    const auto is_same = [&](const codec::KnownContextPtr& context) {
      return context->id() == program->context->id();
    };
    if (std::none_of(contexts.begin(), contexts.end(), is_same)) {
      contexts.push_back(program->context);
    }
  }
  return contexts;
}

void ProgramRegistry::Set(RegisteredProgramPtr program) {
  absl::MutexLock lock(&mu_);
  programs_[program->program->info().name] = std::move(program);
}

void ProgramRegistry::Remove(std::string_view name) {
  absl::MutexLock lock(&mu_);
  if (const auto it = programs_.find(name); it != programs_.end()) programs_.erase(it);
}

}  // namespace cipherd::server
