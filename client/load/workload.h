// What a load consists of: programs with weights, tenants with keys of their own, and encrypted
// inputs, all made before the first request of the load.
//
//   ASSIGN_OR_RETURN(std::unique_ptr<Workload> workload, Workload::Prepare(options));
//   const WorkItem& item = workload->Pick(random);
//   RETURN_IF_ERROR(workload->Release());
//
// Verification: evaluation is deterministic, so that every result for the same ciphertext under the
// same keys has the same bytes, whatever ran beside it. Prepare evaluates each item once, alone,
// decrypts that reference and compares it with the plain expectation where there is one; results
// of the load must equal it bit for bit.
//
// Immutable after Prepare; thread-safe. Memory: inputs and references of every item.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/client.h"
#include "client/client_options.h"
#include "client/program_cipher.h"
#include "client/session.h"
#include "core/value/value_tree.h"

namespace cipherd::client {

struct ProgramShare {
  std::string name;
  // 0: the newest that is ready.
  uint32_t version = 0;
  // Share of the requests, over the sum of all weights.
  double weight = 1;
  // Inputs that are missing are made at random, in [-1, 1].
  NamedVectors inputs;
  // What decrypted outputs must be, by name and within the tolerance. Empty: not compared.
  NamedVectors expected;
  double tolerance = 1e-3;
};

struct WorkloadOptions {
  // How each tenant connects. Tenants of one identity have key sets of their own all the same.
  std::vector<ClientOptions> tenants;
  std::vector<ProgramShare> programs;
  // Ciphertexts of each program and tenant.
  int variants = 2;
  bool verify = false;
  uint64_t seed = 1;
  // Called as preparation goes on. May be null.
  std::function<void(int done_count, int total_count)> progress;
};

// One request that can be sent any number of times.
struct WorkItem {
  int program = 0;
  int tenant = 0;
  const Session* session = nullptr;
  const Client* client = nullptr;
  value::ValueTree inputs;
  // With verification.
  std::optional<value::ValueTree> reference;
};

class Workload {
 public:
  // Connects, uploads keys and encrypts. InvalidArgument for options that name no tenant or
  // program, or vectors that a program does not take; FailedPrecondition where a reference is not
  // what was expected; the daemon's errors.
  static absl::StatusOr<std::unique_ptr<Workload>> Prepare(const WorkloadOptions& options);
  // Drops the keys from the daemon, where Release has not.
  ~Workload();

  // By the programs' weights; tenants and variants alike.
  const WorkItem& Pick(std::mt19937_64& random) const;

  // Drops the keys from the daemon. No request may be under way.
  absl::Status Release();

  int program_count() const { return static_cast<int>(program_names_.size()); }
  const std::string& program_name(int program) const { return program_names_[program]; }
  int tenant_count() const { return static_cast<int>(clients_.size()); }
  const std::vector<WorkItem>& items() const { return items_; }
  const v1::ServerInfo& server_info() const { return clients_.front()->server_info(); }

 private:
  Workload() = default;
  absl::Status AddItems(const WorkloadOptions& options, int tenant, int program,
                        std::mt19937_64& random);

  std::vector<std::string> program_names_;
  std::vector<double> weights_;
  int variants_ = 0;
  std::vector<std::unique_ptr<Client>> clients_;
  std::vector<std::unique_ptr<Session>> sessions_;
  // By program, then tenant, then variant.
  std::vector<WorkItem> items_;
};

// Whether both have the same tensors, byte for byte. Requires contiguous host tensors.
bool HaveSameBytes(const value::ValueTree& a, const value::ValueTree& b);

}  // namespace cipherd::client
