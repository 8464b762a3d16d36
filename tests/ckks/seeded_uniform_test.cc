#include "core/ckks/seeded_uniform.h"

#include <cmath>
#include <cstring>
#include <vector>

#include "core/base/sha256.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cipherd::ckks {
namespace {

Seed CountingSeed() {
  Seed seed;
  for (int i = 0; i < kSeedBytes; ++i) seed[i] = static_cast<uint8_t>(i);
  return seed;
}

std::vector<uint64_t> Expand(uint32_t polynomial, uint32_t prime_id, uint64_t q, size_t count) {
  std::vector<uint64_t> residues(count);
  ExpandSeededUniform(CountingSeed(), polynomial, prime_id, q, residues);
  return residues;
}

std::string HashOfLittleEndian(const std::vector<uint64_t>& words) {
  std::vector<uint8_t> bytes;
  for (uint64_t word : words) {
    for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<uint8_t>(word >> (8 * i)));
  }
  return base::ToHex(base::Sha256Of(bytes));
}

// Computed by another program, with a ChaCha20 of its own, from the rule in the header alone. A
// change needs a new version and a migration note.
TEST(SeededUniformTest, VersionOneIsGolden) {
  struct Golden {
    uint32_t polynomial, prime_id;
    uint64_t q, first;
    const char* hash;
  };
  for (const Golden& golden : {
           Golden{0, 0, 0x1fffffffffe00001, 0x1a2e6e5309fb38d8,
                  "e30923eb99face00639a15a1eccf0024bc459b5c7eb6b774f4f0b53c0f5f5b39"},
           // Half of the candidates are rejected.
           Golden{3, 7, 0x10000000001, 0xc418b05c7b,
                  "504448382aca7c97dd1fd5e16885b0678d7a3ba92f69022b6a09b164a5bbb316"},
           Golden{1, 2, 97, 0x13,
                  "e13ec4cc4f14322039e86040fecdc722296e8e0eedd68251b9fc780cd00498d6"},
       }) {
    const std::vector<uint64_t> residues =
        Expand(golden.polynomial, golden.prime_id, golden.q, 4096);
    EXPECT_EQ(residues[0], golden.first);
    EXPECT_EQ(HashOfLittleEndian(residues), golden.hash);
  }
}

TEST(SeededUniformTest, LimbsAndPolynomialsHaveStreamsOfTheirOwn) {
  const uint64_t q = 0x10000000001;
  const std::vector<uint64_t> base = Expand(0, 0, q, 64);
  EXPECT_NE(base, Expand(1, 0, q, 64));
  EXPECT_NE(base, Expand(0, 1, q, 64));
  // A longer expansion begins with the shorter one.
  std::vector<uint64_t> longer = Expand(0, 0, q, 5000);
  longer.resize(64);
  EXPECT_EQ(base, longer);
}

// Chi-square over 97 residues, 96 degrees of freedom: 187 is exceeded with probability below 2^-23.
TEST(SeededUniformTest, ResiduesAreUniform) {
  constexpr int kCount = 97 * 2000;
  std::vector<int> counts(97);
  for (uint64_t residue : Expand(0, 0, 97, kCount)) {
    ASSERT_LT(residue, 97u);
    ++counts[residue];
  }
  double chi_square = 0;
  for (int count : counts) chi_square += std::pow(count - 2000.0, 2) / 2000;
  EXPECT_LT(chi_square, 187);
}

}  // namespace
}  // namespace cipherd::ckks
