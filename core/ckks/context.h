// A validated CKKS context with its identity and its tables on the host.
//
//   ASSIGN_OR_RETURN(std::shared_ptr<const Context> context,
//                    Context::Create(parameters, SecurityPolicy::k128BitClassical));
//   Encoder encoder(context);
//
// Everything that works in a context shares one of these: encoder, secret-key operations, and one
// DeviceContext a device. Immutable and thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "core/ckks/context_parameters.h"
#include "core/ring/ring_tables.h"

namespace cipherd::ring {
class RnsBasis;
}

namespace cipherd::ckks {

class Context {
 public:
  // Validates `parameters` (ContextParameters::Validate gives the errors) and computes the tables.
  static absl::StatusOr<std::shared_ptr<const Context>> Create(ContextParameters parameters,
                                                               SecurityPolicy policy);
  ~Context();
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  const ContextParameters& parameters() const { return parameters_; }
  // 64 hexadecimal digits; equal exactly where the parameters are.
  const std::string& id() const { return id_; }

  const ring::RnsBasis& basis() const { return *basis_; }
  // Host tables. Row i belongs to prime id i.
  const ring::RingTables& ring() const { return ring_; }
  uint64_t prime(int64_t prime_id) const { return ring_.primes[prime_id].q; }

 private:
  Context(ContextParameters parameters, std::unique_ptr<const ring::RnsBasis> basis);

  const ContextParameters parameters_;
  const std::string id_;
  const std::unique_ptr<const ring::RnsBasis> basis_;
  const ring::RingTables ring_;
};

}  // namespace cipherd::ckks
