// The transforms of the CPU device for one limb, on the calling thread: for host work that needs no
// stream (encoding, encryption), with the results of the launchers bit for bit.
#pragma once

#include <cstdint>

#include "core/ring/ring_tables.h"

namespace cipherd::kernels::host {

// out = NTT(in) modulo `prime`, whose tables are in host memory; N = 2^log_n words, canonical.
// `out` may be `in`.
void ForwardNttOfLimb(const ring::PrimeConstants& prime, int log_n, const uint64_t* in,
                      uint64_t* out);
// out = NTT^-1(in), likewise.
void InverseNttOfLimb(const ring::PrimeConstants& prime, int log_n, const uint64_t* in,
                      uint64_t* out);

}  // namespace cipherd::kernels::host
