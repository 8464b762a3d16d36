// Which sanitizers this is compiled for: GCC says so by macros of its own, clang (before 19) by
// features.
//
//   #if CIPHERD_ADDRESS_SANITIZER
//
// Always defined, as 0 or 1.
#pragma once

#if defined(__has_feature)
#define CIPHERD_HAS_FEATURE(name) __has_feature(name)
#else
#define CIPHERD_HAS_FEATURE(name) 0
#endif

#if defined(__SANITIZE_ADDRESS__) || CIPHERD_HAS_FEATURE(address_sanitizer)
#define CIPHERD_ADDRESS_SANITIZER 1
#else
#define CIPHERD_ADDRESS_SANITIZER 0
#endif

#if defined(__SANITIZE_THREAD__) || CIPHERD_HAS_FEATURE(thread_sanitizer)
#define CIPHERD_THREAD_SANITIZER 1
#else
#define CIPHERD_THREAD_SANITIZER 0
#endif
