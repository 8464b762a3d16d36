// Vectors in JSON were copied after they had been parsed, by a function of the JSON library that goes
// as deep as arrays are nested: a file of a few hundred kilobytes of brackets overran the stack.
#include <string>

#include "client/files/vector_file.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::client {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;

TEST(NestedJsonTest, ArraysAsDeepAsAFileIsLongAreRefused) {
  constexpr size_t kDepth = 1'000'000;
  const std::string text = std::string(kDepth, '[') + std::string(kDepth, ']');
  EXPECT_THAT(ParseJson(text, "deep.json"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("[0][0]: expected a number")));
}

TEST(NestedJsonTest, OneVectorAndSeveralAreRead) {
  EXPECT_EQ(*ParseJson("[1, 2.5]", "one.json"), (Vectors{{1, 2.5}}));
  EXPECT_EQ(*ParseJson("[[1], [2.5, 3]]", "two.json"), (Vectors{{1}, {2.5, 3}}));
}

}  // namespace
}  // namespace cipherd::client
