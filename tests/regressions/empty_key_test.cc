// The head of a key set's file with a key of no words, but for that of dimensions as large as can
// be written, was taken, and its bytes were multiplied out until they overflowed.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "server/engine/key_file_head.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::engine {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;

// What DecodeKeyFileHead reads of a set with one key of `shape`.
std::string HeadOf(std::vector<int64_t> shape) {
  KeySetInfo info;
  info.tenant = "alice";
  info.context_id = std::string(64, 'c');
  info.keys.push_back({.id = ckks::KeyId::Relinearization(), .shape = std::move(shape)});
  return EncodeKeyFileHead(info).substr(kKeyFilePrefixBytes);
}

TEST(EmptyKeyTest, AKeyWithoutWordsIsNoKey) {
  constexpr int64_t kHuge = int64_t{1} << 62;
  EXPECT_OK(DecodeKeyFileHead(HeadOf({2, 2, 16})));
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{0}, {kHuge, kHuge, 0}, {2, 0, 16}}) {
    EXPECT_THAT(DecodeKeyFileHead(HeadOf(shape)),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("a key's shape")));
  }
}

}  // namespace
}  // namespace cipherd::engine
