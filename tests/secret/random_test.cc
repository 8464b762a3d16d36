#include "core/secret/random.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "core/secret/secret_buffer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::secret {
namespace {

TEST(RandomTest, GeneratorsFromTheSystemDiffer) {
  ASSERT_OK_AND_ASSIGN(Random a, Random::FromOsEntropy());
  ASSERT_OK_AND_ASSIGN(Random b, Random::FromOsEntropy());
  std::array<uint8_t, 32> from_a;
  std::array<uint8_t, 32> from_b;
  a.Fill(from_a);
  b.Fill(from_b);
  EXPECT_NE(from_a, from_b);
}

TEST(RandomTest, SeedsDecideTheStream) {
  Random a = Random::FromSeedForTesting(1);
  Random b = Random::FromSeedForTesting(1);
  Random c = Random::FromSeedForTesting(2);
  const uint64_t first = a.NextUint64();
  EXPECT_EQ(first, b.NextUint64());
  EXPECT_NE(first, c.NextUint64());
}

// RFC 8439, appendix A.1, test vector 1: the key stream of the zero key, nonce and counter.
TEST(RandomTest, StreamIsChaCha20) {
  Random random = Random::FromSeedForTesting(0);
  const std::array<uint8_t, 16> expected = {0x76, 0xb8, 0xe0, 0xad, 0xa0, 0xf1, 0x3d, 0x90,
                                            0x40, 0x5d, 0x6a, 0xe5, 0x53, 0x86, 0xbd, 0x28};
  std::array<uint8_t, 16> bytes;
  random.Fill(bytes);
  EXPECT_EQ(bytes, expected);
}

TEST(RandomTest, PiecesOfAnySizeContinueOneStream) {
  Random whole = Random::FromSeedForTesting(3);
  Random pieces = Random::FromSeedForTesting(3);
  std::vector<uint8_t> expected(20000);
  whole.Fill(expected);
  std::vector<uint8_t> actual(expected.size());
  size_t done = 0;
  for (size_t piece = 1; done < actual.size(); piece = piece * 3 + 1) {
    const size_t count = std::min(piece % 5000, actual.size() - done);
    pieces.Fill(std::span(actual).subspan(done, count));
    done += count;
  }
  EXPECT_EQ(actual, expected);
}

TEST(RandomTest, MovedGeneratorsGoOn) {
  Random expected = Random::FromSeedForTesting(4);
  Random first = Random::FromSeedForTesting(4);
  EXPECT_EQ(first.NextUint64(), expected.NextUint64());
  Random second = std::move(first);
  EXPECT_EQ(second.NextUint64(), expected.NextUint64());
}

TEST(RandomTest, UnitDoublesLieBelowOne) {
  Random random = Random::FromSeedForTesting(5);
  double sum = 0;
  for (int i = 0; i < 10000; ++i) {
    const double u = random.NextUnitDouble();
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
  }
  // Mean 1/2, standard deviation sqrt(1/12) / 100 = 0.0029: seven of them.
  EXPECT_NEAR(sum / 10000, 0.5, 0.021);
}

// Counts bytes that are not zero in what it is given back.
int g_blocks_returned = 0;
int g_bytes_left = 0;
template <typename T>
struct InspectingAllocator {
  using value_type = T;
  T* allocate(size_t count) { return std::allocator<T>().allocate(count); }
  void deallocate(T* block, size_t count) {
    ++g_blocks_returned;
    const auto* bytes = reinterpret_cast<const uint8_t*>(block);
    for (size_t i = 0; i < count * sizeof(T); ++i) g_bytes_left += bytes[i] != 0 ? 1 : 0;
    std::allocator<T>().deallocate(block, count);
  }
  bool operator==(const InspectingAllocator&) const { return true; }
};
using InspectedBuffer = SecretBuffer<uint64_t, InspectingAllocator<uint64_t>>;

InspectedBuffer FilledBuffer() {
  InspectedBuffer buffer(100);
  for (uint64_t& word : buffer.span()) word = ~uint64_t{0};
  return buffer;
}

TEST(SecretBufferTest, MemoryIsZeroWhenItIsGivenBack) {
  g_blocks_returned = g_bytes_left = 0;
  { const InspectedBuffer buffer = FilledBuffer(); }
  EXPECT_EQ(g_blocks_returned, 1);
  EXPECT_EQ(g_bytes_left, 0);
  // Over another one.
  {
    InspectedBuffer a = FilledBuffer();
    a = FilledBuffer();
    EXPECT_EQ(g_blocks_returned, 2);
    EXPECT_EQ(a[99], ~uint64_t{0});
    const InspectedBuffer b = std::move(a);
    EXPECT_EQ(b[99], ~uint64_t{0});
  }
  EXPECT_EQ(g_blocks_returned, 3);
  EXPECT_EQ(g_bytes_left, 0);
}

}  // namespace
}  // namespace cipherd::secret
