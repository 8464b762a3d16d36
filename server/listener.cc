#include "server/listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/status_macros.h"
#include "spdlog/spdlog.h"

namespace cipherd::server {
namespace {

using base::FileDescriptor;

// Of connections that the kernel has made and nobody has accepted yet.
constexpr int kBacklog = SOMAXCONN;
// Before accept() is tried again that has failed for want of descriptors or memory.
constexpr int kWantMilliseconds = 100;
constexpr char kUnixPrefix[] = "unix:";

absl::Status CannotListen(const std::string& address, const char* what) {
  return absl::UnavailableError(
      absl::StrCat("cannot listen on ", address, ": ", what, ": ", std::strerror(errno)));
}

// host:port or [host]:port.
absl::Status SplitAddress(const std::string& address, std::string& host, std::string& port) {
  const size_t colon = address.rfind(':');
  int number = 0;
  // The resolver takes more, and drops what is beyond 16 bits.
  if (colon == std::string::npos || !absl::SimpleAtoi(address.substr(colon + 1), &number) ||
      number < 0 || number > 65535) {
    return absl::InvalidArgumentError(absl::StrCat(
        "address to listen on: expected host:port, with a port of 0 to 65535, or unix:path, got '",
        address, "'"));
  }
  host = address.substr(0, colon);
  port = absl::StrCat(number);
  if (absl::StartsWith(host, "[") && absl::EndsWith(host, "]")) {
    host = host.substr(1, host.size() - 2);
  }
  return absl::OkStatus();
}

void SetPort(sockaddr_storage& address, int port) {
  const in_port_t network_order = htons(static_cast<uint16_t>(port));
  if (address.ss_family == AF_INET) {
    reinterpret_cast<sockaddr_in&>(address).sin_port = network_order;
  } else {
    reinterpret_cast<sockaddr_in6&>(address).sin6_port = network_order;
  }
}

int PortOf(int socket) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET ? reinterpret_cast<sockaddr_in&>(address).sin_port
                                            : reinterpret_cast<sockaddr_in6&>(address).sin6_port);
}

// Not open where it cannot be had; errno says why.
FileDescriptor ListenOn(const sockaddr_storage& address, socklen_t size,
                        absl::Duration silence_timeout) {
  const int yes = 1;
  const int no = 0;
  FileDescriptor fd(socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.is_open()) return fd;
  if (address.ss_family != AF_UNIX) {
    // A daemon that starts again need not wait for the connections of the former one. A second one
    // on the same port is still an error.
    setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    // Both are inherited by connections. gRPC writes whole frames.
    setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    const auto milliseconds = static_cast<unsigned int>(absl::ToInt64Milliseconds(silence_timeout));
    setsockopt(fd.get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof(milliseconds));
  }
  if (address.ss_family == AF_INET6) {
    setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
  }
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0 ||
      listen(fd.get(), kBacklog) != 0) {
    return FileDescriptor();
  }
  return fd;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Listener>> Listener::Open(const std::string& address,
                                                         absl::Duration silence_timeout,
                                                         ConnectionTable& table) {
  std::unique_ptr<Listener> listener(new Listener(silence_timeout, table));
  CIPHERD_RETURN_IF_ERROR(
      absl::StartsWith(address, kUnixPrefix)
          ? listener->ListenOnPath(std::string(absl::StripPrefix(address, kUnixPrefix)))
          : listener->ListenOnHost(address));
  listener->stop_ = FileDescriptor(eventfd(0, EFD_CLOEXEC));
  if (!listener->stop_.is_open()) return CannotListen(address, "eventfd");
  return listener;
}

Listener::~Listener() { Stop(); }

absl::Status Listener::ListenOnPath(const std::string& path) {
  sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = {}};
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat("address to listen on: expected a path of 1 to ",
                                                   sizeof(address.sun_path) - 1,
                                                   " bytes after unix:, got '", path, "'"));
  }
  path.copy(address.sun_path, path.size());
  // What a daemon has left that was killed. One that is in use is taken over, too, as gRPC does it.
  struct stat status = {};
  if (stat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode)) unlink(path.c_str());
  sockaddr_storage storage = {};
  std::memcpy(&storage, &address, sizeof(address));
  sockets_.push_back(ListenOn(storage, sizeof(address), silence_timeout_));
  if (!sockets_.back().is_open()) return CannotListen(path, "bind");
  path_ = path;
  return absl::OkStatus();
}

absl::Status Listener::ListenOnHost(const std::string& address) {
  std::string host;
  std::string port;
  CIPHERD_RETURN_IF_ERROR(SplitAddress(address, host, port));
  // Every address of this machine, of either kind, as gRPC takes it.
  const bool is_any = host.empty() || host == "0.0.0.0" || host == "::";
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(is_any ? "::" : host.c_str(), port.c_str(), &hints, &found);
  if (error != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot listen on ", address, ": ", gai_strerror(error)));
  }
  const absl::Cleanup free_found = [found] { freeaddrinfo(found); };
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    sockaddr_storage storage = {};
    std::memcpy(&storage, one->ai_addr, one->ai_addrlen);
    // All of a name's on the port that was free for the first.
    if (port_ != 0) SetPort(storage, port_);
    FileDescriptor fd = ListenOn(storage, one->ai_addrlen, silence_timeout_);
    if (!fd.is_open()) {
      // A name may have an address that this machine has not. One that is taken would leave clients
      // to whoever has it.
      if (errno != EADDRNOTAVAIL && errno != EAFNOSUPPORT) return CannotListen(address, "bind");
      spdlog::warn("one address of {} cannot be listened on: {}", address, std::strerror(errno));
      continue;
    }
    port_ = PortOf(fd.get());
    sockets_.push_back(std::move(fd));
  }
  if (sockets_.empty() && is_any) {
    // A machine without IPv6.
    sockaddr_storage storage = {};
    storage.ss_family = AF_INET;
    SetPort(storage, std::atoi(port.c_str()));
    FileDescriptor fd = ListenOn(storage, sizeof(sockaddr_in), silence_timeout_);
    if (!fd.is_open()) return CannotListen(address, "bind");
    port_ = PortOf(fd.get());
    sockets_.push_back(std::move(fd));
  }
  return sockets_.empty() ? CannotListen(address, "bind") : absl::OkStatus();
}

void Listener::AddTo(grpc::ServerBuilder& builder,
                     std::shared_ptr<grpc::ServerCredentials> credentials) {
  using Type = grpc::ServerBuilder::experimental_type::ExternalConnectionType;
  acceptor_ =
      builder.experimental().AddExternalConnectionAcceptor(Type::FROM_FD, std::move(credentials));
}

void Listener::Start() {
  thread_ = std::thread([this] { AcceptAll(); });
}

void Listener::Stop() {
  if (thread_.joinable()) {
    eventfd_write(stop_.get(), 1);
    thread_.join();
  }
  sockets_.clear();
  if (const std::string path = std::exchange(path_, ""); !path.empty()) unlink(path.c_str());
}

void Listener::AcceptAll() {
  std::vector<pollfd> waits = {{.fd = stop_.get(), .events = POLLIN, .revents = 0}};
  for (const FileDescriptor& socket : sockets_) {
    waits.push_back({.fd = socket.get(), .events = POLLIN, .revents = 0});
  }
  while (true) {
    if (poll(waits.data(), waits.size(), -1) < 0 && errno != EINTR) {
      spdlog::critical("no connection is accepted any more: poll: {}", std::strerror(errno));
      return;
    }
    if (waits[0].revents != 0) return;
    bool is_in_want = false;
    for (size_t i = 1; i < waits.size(); ++i) {
      if (waits[i].revents != 0) is_in_want |= !AcceptOne(waits[i].fd);
    }
    // The peer stays in the backlog, and the socket readable.
    if (is_in_want) poll(waits.data(), 1, kWantMilliseconds);
  }
}

bool Listener::AcceptOne(int socket) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  FileDescriptor fd(
      accept4(socket, reinterpret_cast<sockaddr*>(&address), &size, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!fd.is_open()) {
    const bool is_in_want =
        errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM;
    if (is_in_want) spdlog::error("cannot accept a connection: {}", std::strerror(errno));
    return !is_in_want;
  }
  // What is turned away closes here.
  if (table_.Admit(fd.get(), PeerKey(address)) != ConnectionTable::Verdict::kAdmitted) return true;
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters connection;
  connection.listener_fd = socket;
  connection.fd = fd.Release();
  acceptor_->HandleNewConnection(&connection);
  return true;
}

}  // namespace cipherd::server
