// A connection to the metrics page that was held open and silent kept the others from theirs.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/metrics.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server {
namespace {

// A connection to a port of this machine; reads give up after ten seconds.
class Connection {
 public:
  explicit Connection(int port) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    const timeval patience = {.tv_sec = 10, .tv_usec = 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { close(fd_); }

  std::string Get(const std::string& path) {
    const std::string request = "GET " + path + " HTTP/1.0\r\n\r\n";
    EXPECT_EQ(write(fd_, request.data(), request.size()), static_cast<ssize_t>(request.size()));
    std::string reply;
    char buffer[4096];
    for (ssize_t n; (n = read(fd_, buffer, sizeof(buffer))) > 0;) reply.append(buffer, n);
    return reply;
  }

 private:
  const int fd_;
};

TEST(SilentScrapeTest, SilentConnectionsDoNotKeepThePageFromOthers) {
  Metrics metrics;
  ASSERT_OK_AND_ASSIGN(const int port, metrics.Serve("127.0.0.1:0"));
  // As many as there are threads, and more: each gives its thread back in time.
  Connection silent[6] = {Connection(port), Connection(port), Connection(port),
                          Connection(port), Connection(port), Connection(port)};
  EXPECT_THAT(Connection(port).Get("/metrics"), ::testing::HasSubstr("cipherd_build_info"));
}

}  // namespace
}  // namespace cipherd::server
