#include "core/ring/galois.h"

#include "absl/strings/str_cat.h"

namespace cipherd::ring {
namespace {

// Requires 2N <= 2^18: products of elements fit 64 bits.
uint32_t PowElement(uint32_t base, uint64_t exponent, int log_n) {
  const uint64_t mask = (uint64_t{2} << log_n) - 1;
  uint64_t result = 1;
  uint64_t square = base;
  for (; exponent != 0; exponent >>= 1) {
    if (exponent & 1) result = result * square & mask;
    square = square * square & mask;
  }
  return static_cast<uint32_t>(result);
}

}  // namespace

absl::Status ValidateGenerator(uint32_t generator, int log_n) {
  const uint32_t remainder = generator % 8;
  if (generator >> (log_n + 1) == 0 && (remainder == 3 || remainder == 5)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "galois generator: expected 3 or 5 mod 8, below 2^", log_n + 1, ", got ", generator));
}

absl::Status ValidateGaloisElement(uint32_t element, int log_n) {
  if (element >> (log_n + 1) == 0 && element % 2 == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("galois element: expected an odd number below 2^",
                                                 log_n + 1, ", got ", element));
}

uint32_t RotationElement(int64_t steps, uint32_t generator, int log_n) {
  const int64_t slot_count = int64_t{1} << (log_n - 1);
  // The generator has order S, a power of two.
  return PowElement(generator, static_cast<uint64_t>(steps & (slot_count - 1)), log_n);
}

uint32_t ConjugationElement(int log_n) { return (uint32_t{2} << log_n) - 1; }

uint32_t InverseElement(uint32_t g, int log_n) {
  // The group of odd numbers mod 2N has exponent dividing N.
  return PowElement(g, (uint64_t{1} << log_n) - 1, log_n);
}

std::vector<uint32_t> AutomorphismNttSources(uint32_t g, int log_n) {
  std::vector<uint32_t> sources(size_t{1} << log_n);
  for (uint32_t i = 0; i < sources.size(); ++i) sources[i] = AutomorphismNttSource(i, g, log_n);
  return sources;
}

std::vector<uint32_t> SlotExponents(uint32_t generator, int log_n) {
  const uint32_t mask = (uint32_t{2} << log_n) - 1;
  std::vector<uint32_t> exponents(size_t{1} << (log_n - 1));
  uint32_t exponent = 1;
  for (uint32_t& slot : exponents) {
    slot = exponent;
    exponent = static_cast<uint32_t>(uint64_t{exponent} * generator & mask);
  }
  return exponents;
}

}  // namespace cipherd::ring
