#include "core/base/file_descriptor.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::base {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;

bool IsOpen(int fd) { return fcntl(fd, F_GETFD) != -1; }
FileDescriptor OpenSomething() { return FileDescriptor(open("/dev/null", O_RDONLY | O_CLOEXEC)); }

TEST(FileDescriptorTest, ClosesWithTheLastThatOwnsIt) {
  FileDescriptor first = OpenSomething();
  ASSERT_TRUE(first.is_open());
  const int fd = first.get();
  {
    const FileDescriptor second = std::move(first);
    EXPECT_TRUE(IsOpen(fd));
  }
  EXPECT_FALSE(IsOpen(fd));
}

TEST(FileDescriptorTest, AssignmentClosesWhatWasThere) {
  FileDescriptor a = OpenSomething(), b = OpenSomething();
  const int of_a = a.get(), of_b = b.get();
  a = std::move(b);
  EXPECT_FALSE(IsOpen(of_a));
  EXPECT_EQ(a.get(), of_b);
  a.Close();
  EXPECT_FALSE(IsOpen(of_b));
  EXPECT_FALSE(a.is_open());
}

TEST(FileDescriptorTest, ErrorsNameThePath) {
  errno = EACCES;
  EXPECT_THAT(ErrnoStatus("cannot open", "/secret"),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("cannot open '/secret'")));
  EXPECT_OK(SyncDirectory("/tmp"));
  EXPECT_THAT(SyncDirectory("/nowhere"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("'/nowhere'")));
}

}  // namespace
}  // namespace cipherd::base
