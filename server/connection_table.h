// Connections that gRPC has been given, so that there are not more of them than there may be.
//
//   ConnectionTable table({.max_connections = 4096}, clock);
//   if (table.Admit(fd, peer) != ConnectionTable::Verdict::kAdmitted) close(fd);
//
// gRPC 1.51 bounds the calls of a connection but not the connections, and does not say when it
// closes one. So the table remembers which socket each descriptor was, and what it is no more has
// been closed: looked at when a bound is reached (100 times a second at most, so that who is turned
// away again and again costs little) and when somebody counts. A descriptor that is given a second
// time was closed in between. Thread-safe.
#pragma once

#include <sys/socket.h>
#include <sys/types.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "core/base/clock.h"

namespace cipherd::server {

// At most so many at once.
struct ConnectionLimits {
  int max_connections = 4096;
  // Of one address; of IPv6 one network of 64 bits, which one peer may have to itself. Peers at a
  // unix: socket have none and are bounded together only.
  int max_connections_per_peer = 1024;
};

// What one peer is known by: an address, or the network of one of IPv6. Empty for what has none.
std::string PeerKey(const sockaddr_storage& address);

class ConnectionTable {
 public:
  enum class Verdict : uint8_t { kAdmitted, kTooMany, kTooManyOfPeer };
  static constexpr size_t kVerdicts = 3;

  static constexpr absl::Duration kLookInterval = absl::Milliseconds(10);

  // `clock` outlives the table.
  ConnectionTable(const ConnectionLimits& limits, const base::Clock& clock)
      : limits_(limits), clock_(clock) {}

  // `fd` is an open socket that is closed by whoever it is given to.
  Verdict Admit(int fd, const std::string& peer) ABSL_LOCKS_EXCLUDED(mu_);

  // Those that are open.
  size_t CountOpen() const ABSL_LOCKS_EXCLUDED(mu_);
  uint64_t CountOf(Verdict verdict) const ABSL_LOCKS_EXCLUDED(mu_);
  const ConnectionLimits& limits() const { return limits_; }

 private:
  // A socket, whatever number it has in the process.
  struct Identity {
    dev_t device = 0;
    ino_t inode = 0;
    bool operator==(const Identity&) const = default;
  };
  struct Connection {
    Identity identity;
    std::string peer;
  };
  using Connections = std::unordered_map<int, Connection>;

  static Identity IdentityOf(int fd);
  bool IsFull(const std::string& peer) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Connections::iterator Remove(Connections::iterator connection) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RemoveClosed() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const ConnectionLimits limits_;
  const base::Clock& clock_;
  mutable absl::Mutex mu_;
  // By descriptor. What has been closed since it was last looked at is still here.
  mutable Connections connections_ ABSL_GUARDED_BY(mu_);
  mutable std::map<std::string, int> peers_ ABSL_GUARDED_BY(mu_);
  absl::Time looked_at_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  std::array<uint64_t, kVerdicts> verdicts_ ABSL_GUARDED_BY(mu_) = {};
};

}  // namespace cipherd::server
