// A connection to a port of this machine that speaks as much HTTP/2 as it takes to be served.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "core/base/file_descriptor.h"

namespace cipherd::server::testing {

class LoopbackConnection {
 public:
  // From an address of loopback, which is not 127.0.0.1 for a peer of its own.
  explicit LoopbackConnection(int port, const char* from = "127.0.0.1")
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const timeval patience = {.tv_sec = 30, .tv_usec = 0};
    setsockopt(fd_.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    sockaddr_in own = {};
    own.sin_family = AF_INET;
    inet_pton(AF_INET, from, &own.sin_addr);
    if (bind(fd_.get(), reinterpret_cast<sockaddr*>(&own), sizeof(own)) != 0) return;
    peer_.sin_family = AF_INET;
    peer_.sin_port = htons(static_cast<uint16_t>(port));
    peer_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  }

  bool Connect() {
    return connect(fd_.get(), reinterpret_cast<sockaddr*>(&peer_), sizeof(peer_)) == 0;
  }
  // Connects, greets, and has the server's greeting; false where the server has closed.
  bool IsServed() {
    static constexpr std::string_view kGreeting(
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 33);
    if (!Connect()) return false;
    if (send(fd_.get(), kGreeting.data(), kGreeting.size(), MSG_NOSIGNAL) < 0) return false;
    return Receive();
  }
  // False once the server has closed.
  bool Receive() {
    char byte = 0;
    return recv(fd_.get(), &byte, 1, 0) == 1;
  }
  int fd() const { return fd_.get(); }
  void Close() { fd_.Close(); }

 private:
  base::FileDescriptor fd_;
  sockaddr_in peer_ = {};
};

}  // namespace cipherd::server::testing
