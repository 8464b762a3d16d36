// A daemon that had once run out of file descriptors never accepted a connection again.
#include <sys/resource.h>
#include <unistd.h>

#include <vector>

#include "core/base/file_descriptor.h"
#include "gtest/gtest.h"
#include "tests/server/loopback_connection.h"
#include "tests/server/service_fixture.h"

namespace cipherd::server {
namespace {

using namespace server::testing;  // NOLINT: the test's own vocabulary

class SpentFilesTest : public ServiceTest {
 protected:
  void SetUp() override {
    ServiceTest::SetUp();
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
  }
  void TearDown() override {
    setrlimit(RLIMIT_NOFILE, &before_);
    ServiceTest::TearDown();
  }

  rlimit before_ = {};
};

TEST_F(SpentFilesTest, ConnectionsAreAcceptedAgainOnceThereAreFiles) {
  LoopbackConnection waiting(server_->port());
  rlimit low = before_;
  low.rlim_cur = static_cast<rlim_t>(waiting.fd()) + 50;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  std::vector<base::FileDescriptor> files;
  for (int fd = dup(waiting.fd()); fd >= 0; fd = dup(waiting.fd())) files.emplace_back(fd);
  ASSERT_FALSE(files.empty());

  // The kernel has the connection, and nobody can accept it.
  ASSERT_TRUE(waiting.Connect());
  // As long as it takes the daemon to try, and fail; what was refused by then is not served late.
  timeval moment = {.tv_sec = 0, .tv_usec = 300000};
  setsockopt(waiting.fd(), SOL_SOCKET, SO_RCVTIMEO, &moment, sizeof(moment));
  EXPECT_FALSE(waiting.Receive());

  files.clear();
  LoopbackConnection next(server_->port());
  EXPECT_TRUE(next.IsServed());
}

}  // namespace
}  // namespace cipherd::server
