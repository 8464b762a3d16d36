// A call whose messages are bytes of the test's choosing.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "grpcpp/channel.h"
#include "grpcpp/generic/generic_stub.h"

namespace cipherd::server::testing {

// Sends `messages` on a call of `method`, "/package.Service/Method", and returns its status.
inline grpc::Status SendRaw(const std::shared_ptr<grpc::Channel>& channel,
                            const std::string& method, const std::vector<std::string>& messages) {
  grpc::GenericStub stub(channel);
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareCall(&context, method, &queue);
  const auto await = [&] {
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    return ok;
  };
  call->StartCall(nullptr);
  await();
  for (const std::string& message : messages) {
    grpc::Slice slice(message);
    call->Write(grpc::ByteBuffer(&slice, 1), nullptr);
    if (!await()) break;
  }
  call->WritesDone(nullptr);
  await();
  grpc::ByteBuffer ignored;
  do {
    call->Read(&ignored, nullptr);
  } while (await());
  grpc::Status status;
  call->Finish(&status, nullptr);
  await();
  return status;
}

}  // namespace cipherd::server::testing
