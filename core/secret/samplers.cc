#include "core/secret/samplers.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/secret/secret_buffer.h"

namespace cipherd::secret {
namespace {

// Candidates drawn from the generator at a time.
constexpr size_t kChunk = 512;

}  // namespace

const std::array<uint64_t, kErrorTailCut + 1> kErrorMagnitudeTable = {
    0x1001f9a1b2ca9468, 0x2e7cf3ef07836cb5, 0x48ca7e85d834a579, 0x5d5d51778f760880,
    0x6bf35598550421b0, 0x7552dc90807bbed5, 0x7ac8820561a4c974, 0x7daa6596524b7ffd,
    0x7f0b8114bba4ecb9, 0x7fa4a9fc5ea574e8, 0x7fe0e1077aef3919, 0x7ff6563f810f15d0,
    0x7ffd4490999bc594, 0x7fff4c0804cd386d, 0x7fffd5e18e7fda18, 0x7ffff709c679c2ee,
    0x7ffffe445c790f6b, 0x7fffffb20f7aa54a, 0x7ffffff3903d235d, 0x7ffffffe32b06d1d,
    0x7fffffffc35125cc, 0x7ffffffff8c11764, 0x7fffffffff36fe33, 0x7fffffffffec3bf8,
    0x7ffffffffffe3c8b, 0x7fffffffffffdb75, 0x7ffffffffffffd51, 0x7fffffffffffffd2,
    0x7ffffffffffffffd, 0x7fffffffffffffff, 0x8000000000000000,
};

void SampleUniformTernary(Random& random, std::span<int8_t> out) {
  SecretBuffer<uint8_t> bytes(kChunk);
  size_t filled = 0;
  while (filled < out.size()) {
    random.Fill(bytes.span());
    for (size_t i = 0; i < bytes.size() && filled < out.size(); ++i) {
      // Of 256 byte values, 255 are admitted: 85 for each residue mod 3. 171 / 2^9 is floor(byte /
      // 3) for every byte.
      const uint32_t byte = bytes[i];
      const uint32_t residue = byte - 3 * ((byte * 171) >> 9);
      out[filled] = static_cast<int8_t>(static_cast<int32_t>(residue) - 1);
      filled += byte < 255 ? 1 : 0;
    }
  }
}

void SampleError(Random& random, std::span<int8_t> out) {
  SecretBuffer<uint64_t> words(kChunk);
  for (size_t done = 0; done < out.size(); done += kChunk) {
    const size_t count = std::min(kChunk, out.size() - done);
    random.Fill(std::span(reinterpret_cast<uint8_t*>(words.data()), count * sizeof(uint64_t)));
    for (size_t i = 0; i < count; ++i) {
      const uint64_t uniform = words[i] >> 1;
      // The magnitude is the number of entries that do not exceed 63 uniform bits. Both are below
      // 2^63, so that the sign of their difference compares them.
      uint64_t magnitude = 0;
      for (uint64_t entry : kErrorMagnitudeTable) magnitude += 1 - ((uniform - entry) >> 63);
      const uint64_t negate = uint64_t{0} - (words[i] & 1);
      out[done + i] = static_cast<int8_t>((magnitude ^ negate) - negate);
    }
  }
}

void SampleRoundedGaussian(Random& random, double sigma, std::span<int64_t> out) {
  for (size_t i = 0; i < out.size(); i += 2) {
    // 1 - u is in (0, 1], so that the radius is finite: at most sqrt(2 · 53 · ln 2) < 8.6.
    const double radius = sigma * std::sqrt(-2 * std::log(1 - random.NextUnitDouble()));
    const double angle = 2 * std::numbers::pi * random.NextUnitDouble();
    out[i] = std::llrint(radius * std::cos(angle));
    if (i + 1 < out.size()) out[i + 1] = std::llrint(radius * std::sin(angle));
  }
}

}  // namespace cipherd::secret
