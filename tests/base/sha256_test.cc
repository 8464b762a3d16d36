#include "core/base/sha256.h"

#include <string>

#include "gtest/gtest.h"

namespace cipherd::base {
namespace {

// FIPS 180-4 example: SHA-256 of "abc".
TEST(Sha256, EqualsThePublishedExampleWholeAndInPieces) {
  const std::string expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  const std::string text = "abc";
  EXPECT_EQ(ToHex(Sha256Of(std::span(reinterpret_cast<const uint8_t*>(text.data()), 3))), expected);
  Sha256 pieces;
  pieces.Update(text.data(), 1);
  pieces.Update(text.data() + 1, 2);
  EXPECT_EQ(ToHex(pieces.Finish()), expected);
}

}  // namespace
}  // namespace cipherd::base
