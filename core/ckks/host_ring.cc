#include "core/ckks/host_ring.h"

#include "core/kernels/arithmetic_tables.h"
#include "core/kernels/entry_body.h"
#include "core/kernels/host/limb_ntt.h"
#include "core/math/integer_arithmetic.h"

namespace cipherd::ckks {
namespace {

using A = math::IntegerArithmetic;

A::Modulus ModulusOf(const Context& context, int64_t prime_id) {
  return kernels::ArithmeticTables<A>::Modulus(context.ring().primes[prime_id]);
}

}  // namespace

void ForwardNttOnHost(const Context& context, int64_t prime_id, std::span<uint64_t> limb) {
  kernels::host::ForwardNttOfLimb(context.ring().primes[prime_id], context.ring().log_n,
                                  limb.data(), limb.data());
}

void InverseNttOnHost(const Context& context, int64_t prime_id, std::span<uint64_t> limb) {
  kernels::host::InverseNttOfLimb(context.ring().primes[prime_id], context.ring().log_n,
                                  limb.data(), limb.data());
}

void LiftSignedOnHost(const Context& context, int64_t prime_id, std::span<const int8_t> in,
                      std::span<uint64_t> out) {
  const uint64_t q = context.prime(prime_id);
  for (size_t i = 0; i < in.size(); ++i) {
    const int64_t v = in[i];
    out[i] = static_cast<uint64_t>(v) + (q & static_cast<uint64_t>(v >> 63));
  }
}

void LiftSignedOnHost(const Context& context, int64_t prime_id, std::span<const int64_t> in,
                      std::span<uint64_t> out) {
  const A::Modulus m = ModulusOf(context, prime_id);
  for (size_t i = 0; i < in.size(); ++i) out[i] = A::ToWord(A::FromSigned(in[i], m));
}

void MultiplyAddOnHost(const Context& context, int64_t prime_id, std::span<const uint64_t> a,
                       std::span<const uint64_t> b, std::span<uint64_t> sum) {
  const A::Modulus m = ModulusOf(context, prime_id);
  for (size_t i = 0; i < a.size(); ++i) {
    sum[i] = kernels::MultiplyAddEntry<A>(a[i], b[i], sum[i], m);
  }
}

void MultiplySubtractOnHost(const Context& context, int64_t prime_id, std::span<const uint64_t> a,
                            std::span<const uint64_t> b, std::span<uint64_t> sum) {
  const A::Modulus m = ModulusOf(context, prime_id);
  for (size_t i = 0; i < a.size(); ++i)
    sum[i] = A::ToWord(
        A::Subtract(A::FromWord(sum[i]), A::Multiply(A::FromWord(a[i]), A::FromWord(b[i]), m), m));
}

void AddOnHost(const Context& context, int64_t prime_id, std::span<const uint64_t> a,
               std::span<uint64_t> sum) {
  const uint64_t q = context.prime(prime_id);
  for (size_t i = 0; i < a.size(); ++i) sum[i] = math::AddMod(sum[i], a[i], q);
}

}  // namespace cipherd::ckks
