// Stands between a client and a daemon on loopback, and cuts the connections when a test says so.
//
//   Relay relay(server->port());
//   ... connect to relay.address() ...
//   relay.CutAfter(1 << 20);        // once that many more bytes have gone to the daemon
//   relay.HoldReplies();            // or as if nobody read
//   relay.HoldRequestsAfter(1 << 20);  // or as if the network had stalled
#pragma once

#include <atomic>
#include <cstdint>
#include <list>
#include <mutex>
#include <string>
#include <thread>

namespace cipherd::testing {

class Relay {
 public:
  explicit Relay(int target_port);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  // New connections go through; those of the moment of the cut do not come back.
  void CutAfter(int64_t bytes) { allowance_ = bytes; }
  int cut_count() const { return cut_count_; }
  // From now on nothing of the daemon's comes through: a client that does not read.
  void HoldReplies() { holds_replies_ = true; }
  // Once that many more bytes have gone to the daemon, no others do until ReleaseRequests.
  void HoldRequestsAfter(int64_t bytes) { hold_after_ = bytes_to_daemon_ + bytes; }
  bool is_holding_requests() const { return holds_requests_; }
  void ReleaseRequests();
  // What has gone to the daemon, over all connections.
  int64_t bytes_to_daemon() const { return bytes_to_daemon_; }

 private:
  struct Connection {
    int client = -1;
    int daemon = -1;
    std::thread up;
    std::thread down;
  };
  void Accept();
  void Pump(int from, int to, bool counts);

  const int target_port_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<int64_t> allowance_ = INT64_MAX;
  std::atomic<int> cut_count_ = 0;
  std::atomic<bool> holds_replies_ = false;
  std::atomic<int64_t> bytes_to_daemon_ = 0;
  std::atomic<int64_t> hold_after_ = INT64_MAX;
  std::atomic<bool> holds_requests_ = false;
  std::mutex mu_;
  std::list<Connection> connections_;
  std::thread accept_thread_;
};

}  // namespace cipherd::testing
