#include "proto/codec/known_context.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/sha256.h"
#include "core/base/status_macros.h"
#include "proto/codec/mismatch.h"

namespace cipherd::codec {

absl::StatusOr<KnownContextPtr> KnownContext::Create(ckks::ContextParameters parameters,
                                                     ckks::SecurityPolicy policy) {
  CIPHERD_RETURN_IF_ERROR(parameters.Validate(policy));
  return KnownContextPtr(new KnownContext(std::move(parameters)));
}

KnownContext::KnownContext(ckks::ContextParameters parameters)
    : parameters_(std::move(parameters)) {
  const base::Sha256Digest digest = base::Sha256Of(parameters_.CanonicalBytes());
  id_ = base::ToHex(digest);
  id_bytes_.assign(digest.begin(), digest.end());
  primes_ = parameters_.q_primes;
  primes_.insert(primes_.end(), parameters_.p_primes.begin(), parameters_.p_primes.end());
}

absl::StatusOr<KnownContextPtr> RequireContext(std::span<const KnownContextPtr> contexts,
                                               std::string_view id_bytes, std::string_view path) {
  constexpr v1::ErrorReason kReason = v1::ERROR_REASON_WRONG_CONTEXT;
  if (id_bytes.size() != base::Sha256Digest().size()) {
    return internal::Mismatch(path, "", "32 bytes", absl::StrCat(id_bytes.size()), kReason);
  }
  for (const KnownContextPtr& context : contexts) {
    if (context->id_bytes() == id_bytes) return context;
  }
  auto append_id = [](std::string* out, const KnownContextPtr& context) {
    absl::StrAppend(out, context->id());
  };
  const std::string expected = absl::StrJoin(contexts, " or ", append_id);
  return internal::Mismatch(
      path, "", expected.empty() ? "none" : expected,
      absl::BytesToHexString(absl::string_view(id_bytes.data(), id_bytes.size())), kReason);
}

}  // namespace cipherd::codec
