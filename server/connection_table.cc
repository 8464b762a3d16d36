#include "server/connection_table.h"

#include <netinet/in.h>
#include <sys/stat.h>

#include <cstring>

namespace cipherd::server {

std::string PeerKey(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &address, sizeof(v4));
    return std::string(reinterpret_cast<const char*>(&v4.sin_addr), sizeof(v4.sin_addr));
  }
  if (address.ss_family != AF_INET6) return "";
  sockaddr_in6 v6;
  std::memcpy(&v6, &address, sizeof(v6));
  const char* const bytes = reinterpret_cast<const char*>(&v6.sin6_addr);
  // On a socket for both, peers of IPv4 come as ::ffff:a.b.c.d.
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) return std::string(bytes + 12, 4);
  return std::string(bytes, 8);
}

ConnectionTable::Identity ConnectionTable::IdentityOf(int fd) {
  struct stat status = {};
  // Of one that is closed, that of no socket.
  if (fstat(fd, &status) != 0) return {};
  return {status.st_dev, status.st_ino};
}

ConnectionTable::Verdict ConnectionTable::Admit(int fd, const std::string& peer) {
  absl::MutexLock lock(&mu_);
  if (const auto former = connections_.find(fd); former != connections_.end()) Remove(former);
  if (const absl::Time now = clock_.Now(); IsFull(peer) && now - looked_at_ >= kLookInterval) {
    RemoveClosed();
    looked_at_ = now;
  }
  Verdict verdict = Verdict::kAdmitted;
  if (IsFull(peer)) {
    verdict = static_cast<int>(connections_.size()) >= limits_.max_connections
                  ? Verdict::kTooMany
                  : Verdict::kTooManyOfPeer;
  } else {
    connections_.insert({fd, {IdentityOf(fd), peer}});
    if (!peer.empty()) ++peers_[peer];
  }
  ++verdicts_[static_cast<size_t>(verdict)];
  return verdict;
}

size_t ConnectionTable::CountOpen() const {
  absl::MutexLock lock(&mu_);
  RemoveClosed();
  return connections_.size();
}

uint64_t ConnectionTable::CountOf(Verdict verdict) const {
  absl::MutexLock lock(&mu_);
  return verdicts_[static_cast<size_t>(verdict)];
}

bool ConnectionTable::IsFull(const std::string& peer) const {
  if (static_cast<int>(connections_.size()) >= limits_.max_connections) return true;
  const auto of_peer = peers_.find(peer);
  return of_peer != peers_.end() && of_peer->second >= limits_.max_connections_per_peer;
}

ConnectionTable::Connections::iterator ConnectionTable::Remove(
    Connections::iterator connection) const {
  if (const auto of_peer = peers_.find(connection->second.peer); of_peer != peers_.end()) {
    if (--of_peer->second == 0) peers_.erase(of_peer);
  }
  return connections_.erase(connection);
}

void ConnectionTable::RemoveClosed() const {
  for (auto connection = connections_.begin(); connection != connections_.end();) {
    connection = IdentityOf(connection->first) == connection->second.identity
                     ? std::next(connection)
                     : Remove(connection);
  }
}

}  // namespace cipherd::server
