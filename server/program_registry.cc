#include "server/program_registry.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
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

std::pair<std::string, int64_t> KeyOf(const RegisteredProgram& program) {
  return {program.info().name, program.info().version};
}

absl::Status SameVersion(const programs::ProgramPlace& place, const programs::ProgramPlace& other,
                         const engine::ProgramInfo& info) {
  return absl::InvalidArgumentError(absl::StrCat(place.path(), ": version ", info.version,
                                                 " of program '", info.name, "' is in ",
                                                 other.path(), " already"));
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
  settings.constant_memory_bytes =
      spec.constant_memory_bytes.value_or(settings.constant_memory_bytes);
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
  CIPHERD_ASSIGN_OR_RETURN(const std::vector<programs::ProgramPlace> places, catalog_.List());
  Changes changes;
  std::map<programs::ProgramPlace, RegisteredProgramPtr> known;
  for (const RegisteredProgramPtr& program : programs()) {
    known[program->place] = program;
    if (!std::binary_search(places.begin(), places.end(), program->place)) {
      changes.gone.push_back(program);
    }
  }
  // Where each version is, of those that stay as they are and those that can be used.
  std::map<std::pair<std::string, int64_t>, programs::ProgramPlace> place_of;
  std::vector<std::pair<programs::ProgramPlace, std::string>> changed;
  for (const programs::ProgramPlace& place : places) {
    // Taken before the files are read: what changes meanwhile is seen the next time.
    std::string fingerprint = catalog_.FingerprintOf(place);
    const auto it = known.find(place);
    if (it == known.end() || it->second->fingerprint != fingerprint) {
      changed.emplace_back(place, std::move(fingerprint));
    } else {
      place_of[KeyOf(*it->second)] = place;
    }
  }
  for (auto& [place, fingerprint] : changed) {
    absl::StatusOr<RegisteredProgramPtr> program = Read(place, std::move(fingerprint));
    if (program.ok()) {
      const auto [it, is_only] = place_of.emplace(KeyOf(**program), place);
      if (!is_only) program = SameVersion(place, it->second, (*program)->info());
    }
    changes.changed.push_back({place, std::move(program)});
  }
  return changes;
}

absl::StatusOr<RegisteredProgramPtr> ProgramRegistry::Read(const programs::ProgramPlace& place,
                                                           std::string fingerprint) const {
  CIPHERD_ASSIGN_OR_RETURN(std::shared_ptr<const programs::CheckedProgram> checked,
                           catalog_.Load(place));
  auto entry = std::make_shared<RegisteredProgram>();
  entry->place = place;
  entry->fingerprint = std::move(fingerprint);
  CIPHERD_ASSIGN_OR_RETURN(const std::optional<std::string> serving_text,
                           catalog_.ReadFileOf(place, kServingFile));
  programs::ServingSpec serving;
  if (serving_text.has_value()) {
    const std::string path =
        (std::filesystem::path(catalog_.directory()) / place.path() / kServingFile).string();
    CIPHERD_ASSIGN_OR_RETURN(serving, codec::ParseServingText(*serving_text, path));
  }
  entry->serving = Merge(serving, default_serving_);
  if (const absl::Status status = entry->serving.Validate(); !status.ok()) {
    return absl::Status(status.code(), absl::StrCat(place.path(), "/", kServingFile, ": ",
                                                    std::string(status.message())));
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

std::vector<RegisteredProgramPtr> ProgramRegistry::Versions(std::string_view name) const {
  absl::MutexLock lock(&mu_);
  std::vector<RegisteredProgramPtr> versions;
  for (auto it = programs_.lower_bound({std::string(name), 0});
       it != programs_.end() && it->first.first == name; ++it) {
    versions.push_back(it->second);
  }
  std::reverse(versions.begin(), versions.end());
  return versions;
}

std::vector<RegisteredProgramPtr> ProgramRegistry::programs() const {
  absl::MutexLock lock(&mu_);
  std::vector<RegisteredProgramPtr> programs;
  for (const auto& [key, program] : programs_) programs.push_back(program);
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

std::vector<RegisteredProgramPtr> ProgramRegistry::ReplacedBy(
    const RegisteredProgram& program) const {
  std::vector<RegisteredProgramPtr> replaced = programs();
  std::erase_if(replaced, [&](const RegisteredProgramPtr& other) {
    return other->place != program.place && KeyOf(*other) != KeyOf(program);
  });
  return replaced;
}

void ProgramRegistry::Set(RegisteredProgramPtr program) {
  absl::MutexLock lock(&mu_);
  std::erase_if(programs_,
                [&](const auto& entry) { return entry.second->place == program->place; });
  programs_[KeyOf(*program)] = std::move(program);
}

bool ProgramRegistry::Remove(const RegisteredProgramPtr& program) {
  absl::MutexLock lock(&mu_);
  const auto it = programs_.find(KeyOf(*program));
  if (it == programs_.end() || it->second != program) return false;
  programs_.erase(it);
  return true;
}

}  // namespace cipherd::server
