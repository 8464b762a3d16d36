#include "client/load/workload.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/secret/random.h"

namespace cipherd::client {
namespace {

absl::Status ValidateOptions(const WorkloadOptions& options) {
  if (options.tenants.empty()) return absl::InvalidArgumentError("load: expected a tenant");
  if (options.programs.empty()) return absl::InvalidArgumentError("load: expected a program");
  if (options.variants < 1) return absl::InvalidArgumentError("variants: expected at least 1");
  for (const ProgramShare& share : options.programs) {
    if (!(share.weight > 0) || !std::isfinite(share.weight)) {
      return absl::InvalidArgumentError(
          absl::StrCat("program '", share.name, "': expected a weight above 0"));
    }
    if (!share.expected.empty() && !options.verify) {
      return absl::InvalidArgumentError(
          absl::StrCat("program '", share.name, "': expectations need verification"));
    }
  }
  return absl::OkStatus();
}

NamedVectors CompleteInputs(const ProgramDescription& program, NamedVectors inputs,
                            std::mt19937_64& random) {
  for (const programs::ProgramInput& input : program.inputs) {
    if (inputs.contains(input.name)) continue;
    std::uniform_real_distribution<double> number(input.states_range() ? input.lower : -1,
                                                  input.states_range() ? input.upper : 1);
    Vectors& items = inputs[input.name];
    items.assign(input.layout.item_count, std::vector<double>(input.layout.element_count));
    for (std::vector<double>& item : items) {
      for (double& element : item) element = number(random);
    }
  }
  return inputs;
}

// FailedPrecondition naming the first number that differs. Nothing is decrypted where nothing is
// expected: made inputs need not be like what a program was planned for.
absl::Status CompareWithExpectation(const Session& session, const value::ValueTree& encrypted,
                                    const NamedVectors& inputs, const ProgramShare& share) {
  if (share.expected.empty()) return absl::OkStatus();
  int64_t item_count = 1;
  for (const auto& [name, items] : inputs) {
    item_count = std::max(item_count, static_cast<int64_t>(items.size()));
  }
  CIPHERD_ASSIGN_OR_RETURN(const NamedVectors actual,
                           session.cipher().DecryptOutputs(encrypted, item_count));
  for (const auto& [name, items] : share.expected) {
    const auto found = actual.find(name);
    if (found == actual.end() || found->second.size() < items.size()) {
      return absl::InvalidArgumentError(absl::StrCat("program '", share.name, "': expected['", name,
                                                     "']: the program has no such output, or "
                                                     "fewer vectors"));
    }
    for (size_t k = 0; k < items.size(); ++k) {
      const std::vector<double>& got = found->second[k];
      for (size_t j = 0; j < items[k].size() && j < got.size(); ++j) {
        // Also where one is no number.
        if (std::abs(got[j] - items[k][j]) <= share.tolerance) continue;
        return absl::FailedPreconditionError(
            absl::StrCat("program '", share.name, "': ", name, "[", k, "][", j, "]: expected ",
                         items[k][j], " within ", share.tolerance, ", got ", got[j]));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<Workload>> Workload::Prepare(const WorkloadOptions& options) {
  CIPHERD_RETURN_IF_ERROR(ValidateOptions(options));
  std::unique_ptr<Workload> workload(new Workload());
  workload->variants_ = options.variants;
  for (const ProgramShare& share : options.programs) {
    workload->program_names_.push_back(share.name);
    workload->weights_.push_back(share.weight);
  }
  for (const ClientOptions& tenant : options.tenants) {
    CIPHERD_ASSIGN_OR_RETURN(std::unique_ptr<Client> client, Client::Connect(tenant));
    workload->clients_.push_back(std::move(client));
  }
  std::mt19937_64 random(options.seed);
  const int total_count = workload->program_count() * workload->tenant_count();
  int done_count = 0;
  for (int program = 0; program < workload->program_count(); ++program) {
    for (int tenant = 0; tenant < workload->tenant_count(); ++tenant) {
      CIPHERD_RETURN_IF_ERROR(workload->AddItems(options, tenant, program, random));
      if (options.progress) options.progress(++done_count, total_count);
    }
  }
  return workload;
}

absl::Status Workload::AddItems(const WorkloadOptions& options, int tenant, int program,
                                std::mt19937_64& random) {
  const Client& client = *clients_[tenant];
  const ProgramShare& share = options.programs[program];
  CIPHERD_ASSIGN_OR_RETURN(std::unique_ptr<Session> created,
                           Session::Create(client, share.name, share.version));
  Session* const session = sessions_.emplace_back(std::move(created)).get();
  if (session->program().required_keys.size() > 0) {
    CIPHERD_RETURN_IF_ERROR(session->UploadKeys());
  }
  CIPHERD_ASSIGN_OR_RETURN(secret::Random entropy, secret::Random::FromOsEntropy());
  for (int variant = 0; variant < options.variants; ++variant) {
    WorkItem item = {.program = program, .tenant = tenant, .session = session, .client = &client};
    const NamedVectors inputs = CompleteInputs(session->program(), share.inputs, random);
    CIPHERD_ASSIGN_OR_RETURN(item.inputs, session->cipher().EncryptInputs(inputs, entropy));
    if (options.verify) {
      CIPHERD_ASSIGN_OR_RETURN(const EvaluationResult result,
                               session->EvaluateEncrypted(item.inputs));
      CIPHERD_RETURN_IF_ERROR(CompareWithExpectation(*session, result.outputs, inputs, share));
      item.reference = result.outputs;
    }
    items_.push_back(std::move(item));
  }
  return absl::OkStatus();
}

Workload::~Workload() { Release().IgnoreError(); }

const WorkItem& Workload::Pick(std::mt19937_64& random) const {
  // Made anew: drawing changes it. It is as long as the mix of programs.
  const size_t program =
      std::discrete_distribution<size_t>(weights_.begin(), weights_.end())(random);
  const size_t per_program = items_.size() / weights_.size();
  const size_t within = std::uniform_int_distribution<size_t>(0, per_program - 1)(random);
  return items_[program * per_program + within];
}

absl::Status Workload::Release() {
  absl::Status status;
  for (const std::unique_ptr<Session>& session : sessions_) {
    if (!session->key_set_id().empty()) status.Update(session->DropKeys());
  }
  return status;
}

bool HaveSameBytes(const value::ValueTree& a, const value::ValueTree& b) {
  const std::vector<const value::Tensor*> of_a = value::TensorsOf(a);
  const std::vector<const value::Tensor*> of_b = value::TensorsOf(b);
  if (of_a.size() != of_b.size()) return false;
  for (size_t i = 0; i < of_a.size(); ++i) {
    if (of_a[i]->bytes() != of_b[i]->bytes()) return false;
    if (std::memcmp(of_a[i]->data(), of_b[i]->data(), of_a[i]->bytes()) != 0) return false;
  }
  return true;
}

}  // namespace cipherd::client
