// Makes a fuzzer of a target.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  cipherd::fuzz::Decode({reinterpret_cast<const char*>(data), size});
  return 0;
}
