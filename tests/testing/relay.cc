#include "tests/testing/relay.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

namespace cipherd::testing {
namespace {

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

}  // namespace

Relay::Relay(int target_port) : target_port_(target_port) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener_, 16) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    std::abort();
  }
  port_ = ntohs(address.sin_port);
  accept_thread_ = std::thread([this] { Accept(); });
}

void Relay::ReleaseRequests() {
  hold_after_ = INT64_MAX;
  holds_requests_ = false;
  holds_requests_.notify_all();
}

Relay::~Relay() {
  ReleaseRequests();
  holds_replies_ = false;
  holds_replies_.notify_all();
  shutdown(listener_, SHUT_RDWR);
  accept_thread_.join();
  close(listener_);
  for (Connection& connection : connections_) {
    shutdown(connection.client, SHUT_RDWR);
    shutdown(connection.daemon, SHUT_RDWR);
    connection.up.join();
    connection.down.join();
    close(connection.client);
    close(connection.daemon);
  }
}

void Relay::Accept() {
  while (true) {
    const int client = accept(listener_, nullptr, nullptr);
    if (client < 0) return;
    const int daemon = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in address = Loopback(target_port_);
    if (connect(daemon, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
      close(client);
      close(daemon);
      continue;
    }
    std::lock_guard lock(mu_);
    Connection& connection = connections_.emplace_back();
    connection.client = client;
    connection.daemon = daemon;
    connection.up = std::thread([=, this] { Pump(client, daemon, /*counts=*/true); });
    connection.down = std::thread([=, this] { Pump(daemon, client, /*counts=*/false); });
  }
}

void Relay::Pump(int from, int to, bool counts) {
  std::array<char, 16384> buffer;
  while (true) {
    const ssize_t count = read(from, buffer.data(), buffer.size());
    if (count <= 0) break;
    if (!counts) holds_replies_.wait(true);
    if (counts && bytes_to_daemon_ + count > hold_after_) {
      holds_requests_ = true;
      holds_requests_.wait(true);
    }
    if (counts && allowance_.fetch_sub(count) < count) {
      ++cut_count_;
      allowance_ = INT64_MAX;
      break;
    }
    for (ssize_t sent = 0; sent < count;) {
      const ssize_t written =
          send(to, buffer.data() + sent, static_cast<size_t>(count - sent), MSG_NOSIGNAL);
      if (written <= 0) break;
      sent += written;
    }
    if (counts) bytes_to_daemon_ += count;
  }
  shutdown(from, SHUT_RDWR);
  shutdown(to, SHUT_RDWR);
}

}  // namespace cipherd::testing
