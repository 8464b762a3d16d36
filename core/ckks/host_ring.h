// Ring operations on single limbs of host memory, on the calling thread: for encoding, and for the
// owner of a secret key. Evaluation goes through kernels::KernelTable instead.
//
// Residues are canonical, in the order of the wire. Thread-safe.
#pragma once

#include <cstdint>
#include <span>

#include "core/ckks/context.h"

namespace cipherd::ckks {

// Coefficients to NTT domain and back, in place. Requires N residues modulo the prime.
void ForwardNttOnHost(const Context& context, int64_t prime_id, std::span<uint64_t> limb);
void InverseNttOnHost(const Context& context, int64_t prime_id, std::span<uint64_t> limb);

// out[i] = in[i] mod q. No branch depends on the numbers, which may be secret. int8_t: requires
// magnitudes below q. int64_t: any.
void LiftSignedOnHost(const Context& context, int64_t prime_id, std::span<const int8_t> in,
                      std::span<uint64_t> out);
void LiftSignedOnHost(const Context& context, int64_t prime_id, std::span<const int64_t> in,
                      std::span<uint64_t> out);

// sum[i] += a[i] · b[i] mod q, and sum[i] -= a[i] · b[i] mod q.
void MultiplyAddOnHost(const Context& context, int64_t prime_id, std::span<const uint64_t> a,
                       std::span<const uint64_t> b, std::span<uint64_t> sum);
void MultiplySubtractOnHost(const Context& context, int64_t prime_id, std::span<const uint64_t> a,
                            std::span<const uint64_t> b, std::span<uint64_t> sum);
// sum[i] += a[i] mod q.
void AddOnHost(const Context& context, int64_t prime_id, std::span<const uint64_t> a,
               std::span<uint64_t> sum);

}  // namespace cipherd::ckks
