// A context that values on the wire may belong to, with what the checks need computed once.
//
//   CIPHERD_ASSIGN_OR_RETURN(KnownContextPtr context,
//                            KnownContext::Create(parameters, SecurityPolicy::k128BitClassical));
//
// Holds numbers only: no tables, no device. Immutable; shared by threads.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/ckks/context_parameters.h"

namespace cipherd::codec {

class KnownContext;
using KnownContextPtr = std::shared_ptr<const KnownContext>;

class KnownContext {
 public:
  // Errors of ContextParameters::Validate.
  static absl::StatusOr<KnownContextPtr> Create(ckks::ContextParameters parameters,
                                                ckks::SecurityPolicy policy);

  const ckks::ContextParameters& parameters() const { return parameters_; }
  // 64 hexadecimal digits, and the 32 bytes that they stand for.
  const std::string& id() const { return id_; }
  const std::string& id_bytes() const { return id_bytes_; }

  // q_primes, then p_primes: indexed by prime id.
  const std::vector<uint64_t>& primes() const { return primes_; }

 private:
  explicit KnownContext(ckks::ContextParameters parameters);

  const ckks::ContextParameters parameters_;
  std::string id_;
  std::string id_bytes_;
  std::vector<uint64_t> primes_;
};

// The one among `contexts` whose id a peer names by `id_bytes`, in the field called `path`.
// InvalidArgument with reason WRONG_CONTEXT, naming both ids, where there is none.
absl::StatusOr<KnownContextPtr> RequireContext(std::span<const KnownContextPtr> contexts,
                                               std::string_view id_bytes, std::string_view path);

}  // namespace cipherd::codec
