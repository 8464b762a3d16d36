// A reader of IDX files took the memory that the header of a few bytes promised, up to 1 GiB,
// before it looked whether anything came.
#include <sys/resource.h>

#include <cstdint>
#include <string>

#include "client/demo/idx_file.h"
#include "gtest/gtest.h"
#include "tests/programs/temporary_directory.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::client {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;

int64_t PeakMemoryBytes() {
  rusage usage = {};
  EXPECT_EQ(getrusage(RUSAGE_SELF, &usage), 0);
  return int64_t{usage.ru_maxrss} << 10;
}

TEST(PromisedItemsTest, MemoryIsTakenForWhatComes) {
  const programs::TemporaryDirectory directory;
  // 2^30 bytes, of which three come.
  const std::string path =
      directory.Write("items", std::string("\0\0\x08\x02\0\1\0\0\0\0\x40\0", 12) + "abc");
  const int64_t before = PeakMemoryBytes();
  EXPECT_THAT(ReadIdxFile(path, INT64_MAX),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("ends early")));
  EXPECT_LT(PeakMemoryBytes() - before, int64_t{64} << 20);
}

}  // namespace
}  // namespace cipherd::client
