// Accepts the connections of a gRPC server and hands them to it, as many as there may be.
//
//   CIPHERD_ASSIGN_OR_RETURN(auto listener, Listener::Open("127.0.0.1:0", timeout, table));
//   listener->AddTo(builder, credentials);
//   grpc_server = builder.BuildAndStart();
//   listener->Start();
//
// gRPC's own listener of version 1.51 bounds no connections, and it never accepts again once
// accept() has failed for want of descriptors (tests/regressions/spent_files_test.cc): whoever can
// connect can end the service. This one waits until there are some, and turns away what is beyond
// the bounds of its table.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/base/file_descriptor.h"
#include "grpcpp/server_builder.h"
#include "server/connection_table.h"

namespace cipherd::server {

class Listener {
 public:
  // `address` is host:port or unix:path; a port of 0 takes a free one. A host's name means every
  // address that it has. A peer that takes nothing, or acknowledges nothing, of what it is sent for
  // `silence_timeout` has gone. `table` outlives the listener. InvalidArgument for what is no
  // address; Unavailable where none of it can be listened on. Peers wait until Start.
  static absl::StatusOr<std::unique_ptr<Listener>> Open(const std::string& address,
                                                        absl::Duration silence_timeout,
                                                        ConnectionTable& table);
  // Stops.
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // Before the server is built; once.
  void AddTo(grpc::ServerBuilder& builder, std::shared_ptr<grpc::ServerCredentials> credentials);
  // Accepts from here on, on a thread of its own. Once the server has started.
  void Start();
  // Accepts no more, and listens no more. Connections stay. Before the server shuts down.
  // Idempotent.
  void Stop();

  // 0 for unix:.
  int port() const { return port_; }

 private:
  Listener(absl::Duration silence_timeout, ConnectionTable& table)
      : silence_timeout_(silence_timeout), table_(table) {}

  absl::Status ListenOnPath(const std::string& path);
  absl::Status ListenOnHost(const std::string& address);
  void AcceptAll();
  // False where there is none to be had now, but maybe later.
  bool AcceptOne(int socket);

  const absl::Duration silence_timeout_;
  ConnectionTable& table_;
  std::vector<base::FileDescriptor> sockets_;
  // Removed with the listener. Empty for TCP.
  std::string path_;
  int port_ = 0;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  // Readable once accepting is to end.
  base::FileDescriptor stop_;
  std::thread thread_;
};

}  // namespace cipherd::server
