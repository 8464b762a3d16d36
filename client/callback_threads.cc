#include "client/callback_threads.h"

#include <memory>

#include "absl/synchronization/notification.h"
#include "grpcpp/client_context.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"

namespace cipherd::client {
namespace {

// A channel that has made a call by callback. It has no credentials: it fails every call at once,
// and connects to nothing.
std::shared_ptr<grpc::Channel> MakeKeeper() {
  auto channel = grpc::CreateChannel("none", nullptr);
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  const grpc::Slice nothing("");
  grpc::ByteBuffer request(&nothing, 1);
  grpc::ByteBuffer response;
  absl::Notification ended;
  stub.UnaryCall(&context, "/none", {}, &request, &response,
                 [&](const grpc::Status&) { ended.Notify(); });
  ended.WaitForNotification();
  return channel;
}

}  // namespace

void KeepCallbackThreads() {
  // Never destroyed. Volatile, so that it stays reachable in the eyes of leak checkers.
  [[maybe_unused]] static const std::shared_ptr<grpc::Channel>* volatile keeper =
      new std::shared_ptr<grpc::Channel>(MakeKeeper());
}

}  // namespace cipherd::client
