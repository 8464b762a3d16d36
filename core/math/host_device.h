// Marks a function that the host's compiler and the CUDA compiler both build, always inlined.
#pragma once

#if defined(__CUDACC__)
#define CIPHERD_HD __host__ __device__ __forceinline__
#else
#define CIPHERD_HD inline __attribute__((always_inline))
#endif
