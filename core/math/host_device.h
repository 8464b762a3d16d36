// Marks for code that the host's compiler and the CUDA compiler both build.
#pragma once

#if defined(__CUDACC__)
// A function for both sides, always inlined.
#define CIPHERD_HD __host__ __device__ __forceinline__
// Unrolls the loop that follows, whose bounds are constants.
#define CIPHERD_UNROLL _Pragma("unroll")
#else
#define CIPHERD_HD inline __attribute__((always_inline))
#define CIPHERD_UNROLL _Pragma("GCC unroll 16")
#endif
