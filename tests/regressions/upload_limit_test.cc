// Uploads that had ended or broken counted against their tenant as long as they were remembered:
// who had sent 64 key sets within a minute, or had left so many half way, was refused the next.
#include <string>

#include "gtest/gtest.h"
#include "server/upload_table.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server {
namespace {

using ::cipherd::testing::StatusIs;

UploadTable::Key KeyOf(int number) { return {"tenant", std::to_string(number)}; }

TEST(UploadLimitTest, WhatIsOnlyRememberedMakesRoom) {
  UploadTable uploads(absl::Minutes(1), base::Clock::Real());
  for (int i = 0; i < 100; ++i) {
    ASSERT_OK(uploads.Begin(KeyOf(i), 0, [] {})) << i;
    uploads.End(KeyOf(i), std::string(64, 'a'));
  }
  // The oldest has gone, the latest is known.
  EXPECT_THAT(uploads.Find(KeyOf(0)), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_OK(uploads.Find(KeyOf(99)));
}

TEST(UploadLimitTest, WhatStreamsHaveDoesNot) {
  UploadTable uploads(absl::Minutes(1), base::Clock::Real());
  for (int i = 0; i < 64; ++i) ASSERT_OK(uploads.Begin(KeyOf(i), 0, [] {})) << i;
  EXPECT_THAT(uploads.Begin(KeyOf(64), 0, [] {}), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_OK(uploads.Begin({"another tenant", "0"}, 0, [] {}));
}

}  // namespace
}  // namespace cipherd::server
