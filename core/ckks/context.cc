#include "core/ckks/context.h"

#include <utility>

#include "core/base/status_macros.h"
#include "core/ring/rns_basis.h"

namespace cipherd::ckks {

absl::StatusOr<std::shared_ptr<const Context>> Context::Create(ContextParameters parameters,
                                                               SecurityPolicy policy) {
  CIPHERD_RETURN_IF_ERROR(parameters.Validate(policy));
  std::vector<uint64_t> primes = parameters.q_primes;
  primes.insert(primes.end(), parameters.p_primes.begin(), parameters.p_primes.end());
  CIPHERD_ASSIGN_OR_RETURN(ring::RnsBasis basis, ring::RnsBasis::Create(parameters.log_n, primes));
  return std::shared_ptr<const Context>(
      new Context(std::move(parameters), std::make_unique<const ring::RnsBasis>(std::move(basis))));
}

Context::Context(ContextParameters parameters, std::unique_ptr<const ring::RnsBasis> basis)
    : parameters_(std::move(parameters)),
      id_(parameters_.ContextId()),
      basis_(std::move(basis)),
      ring_(basis_->tables()) {}

Context::~Context() = default;

}  // namespace cipherd::ckks
