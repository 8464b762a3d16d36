// A connection to a port of this machine that speaks as much HTTP/2 as it takes to be served.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/file_descriptor.h"

namespace cipherd::server::testing {

class LoopbackConnection {
 public:
  // Of HTTP/2: types of frames, and flags.
  static constexpr uint8_t kData = 0, kHeaders = 1, kReset = 3, kSettings = 4, kPing = 6;
  static constexpr uint8_t kAck = 1, kEndStream = 1, kEndHeaders = 4;
  struct Frame {
    uint8_t type = 0;
    uint8_t flags = 0;
    uint32_t stream = 0;
  };

  // From an address of loopback, which is not 127.0.0.1 for a peer of its own.
  explicit LoopbackConnection(int port, const char* from = "127.0.0.1")
      : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    // Less than what the daemon grants by default: who waits for a bound of his own sees it missed.
    const timeval patience = {.tv_sec = 15, .tv_usec = 0};
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
  bool IsServed() { return Connect() && Greet() && ReceiveFrame().has_value(); }
  // What a client says first, with `settings` (six bytes each).
  bool Greet(std::string_view settings = "") {
    return Send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") && SendFrame(kSettings, 0, 0, settings);
  }
  bool Send(std::string_view bytes) {
    return send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }
  // The next so many bytes; fewer where the server has closed, or kept silent for too long.
  std::string Receive(size_t count) {
    std::string bytes(count, '\0');
    const ssize_t received = recv(fd_.get(), bytes.data(), count, MSG_WAITALL);
    bytes.resize(received > 0 ? static_cast<size_t>(received) : 0);
    return bytes;
  }
  bool SendFrame(uint8_t type, uint8_t flags, uint32_t stream, std::string_view payload) {
    std::string frame;
    for (int shift : {16, 8, 0}) frame += static_cast<char>(payload.size() >> shift);
    frame += static_cast<char>(type);
    frame += static_cast<char>(flags);
    for (int shift : {24, 16, 8, 0}) frame += static_cast<char>(stream >> shift);
    return Send(frame.append(payload));
  }
  // Where the server neither closes nor keeps silent.
  std::optional<Frame> ReceiveFrame() {
    const std::string head = Receive(kHeadBytes);
    if (head.size() < kHeadBytes) return std::nullopt;
    const auto number = [&](size_t begin, size_t end) {
      uint32_t value = 0;
      for (size_t i = begin; i < end; ++i) value = value << 8 | static_cast<uint8_t>(head[i]);
      return value;
    };
    const size_t payload_bytes = number(0, 3);
    if (Receive(payload_bytes).size() < payload_bytes) return std::nullopt;
    return Frame{.type = static_cast<uint8_t>(head[3]),
                 .flags = static_cast<uint8_t>(head[4]),
                 .stream = number(5, kHeadBytes)};
  }
  // Whether the server is there: of a connection that has greeted.
  bool AnswersPing() {
    if (!SendFrame(kPing, 0, 0, "12345678")) return false;
    while (const std::optional<Frame> frame = ReceiveFrame()) {
      if (frame->type == kPing && (frame->flags & kAck) != 0) return true;
    }
    return false;
  }
  // Whether a byte comes, within patience.
  bool Receive() { return !Receive(1).empty(); }
  // Takes what comes until the server closes; false where it keeps silent instead.
  bool Ends() {
    char byte = 0;
    ssize_t received = 0;
    do {
      received = recv(fd_.get(), &byte, 1, 0);
    } while (received == 1);
    return received == 0 || errno == ECONNRESET;
  }
  int fd() const { return fd_.get(); }
  void Close() { fd_.Close(); }

 private:
  static constexpr size_t kHeadBytes = 9;

  base::FileDescriptor fd_;
  sockaddr_in peer_ = {};
};

}  // namespace cipherd::server::testing
