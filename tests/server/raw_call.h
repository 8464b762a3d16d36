// A call whose messages are bytes of the test's choosing.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "grpcpp/channel.h"
#include "grpcpp/generic/generic_stub.h"

namespace cipherd::server::testing {

// Each function blocks until its part of the call is done. For one thread, but for Cancel.
class RawCall {
 public:
  // Of `method`, "/package.Service/Method".
  RawCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& method)
      : stub_(channel), call_(stub_.PrepareCall(&context_, method, &queue_)) {
    call_->StartCall(nullptr);
    Await();
  }
  ~RawCall() {
    if (!is_finished_) {
      Cancel();
      Finish();
    }
  }
  RawCall(const RawCall&) = delete;
  RawCall& operator=(const RawCall&) = delete;

  // False once the call has ended: nothing more can be sent.
  bool Write(std::string_view message) {
    grpc::Slice slice(message.data(), message.size());
    call_->Write(grpc::ByteBuffer(&slice, 1), nullptr);
    return Await();
  }
  void Cancel() { context_.TryCancel(); }
  // Half-closes, and takes what is still sent: into `responses`, where they are given. Once.
  grpc::Status Finish(std::vector<std::string>* responses = nullptr) {
    is_finished_ = true;
    call_->WritesDone(nullptr);
    Await();
    for (grpc::ByteBuffer response;; response.Clear()) {
      call_->Read(&response, nullptr);
      if (!Await()) break;
      if (responses != nullptr) responses->push_back(BytesOf(response));
    }
    return AwaitStatus();
  }
  // Says nothing more, and waits for the daemon to end the call. Once.
  grpc::Status AwaitStatus() {
    is_finished_ = true;
    grpc::Status status;
    call_->Finish(&status, nullptr);
    Await();
    return status;
  }

 private:
  static std::string BytesOf(const grpc::ByteBuffer& buffer) {
    std::vector<grpc::Slice> slices;
    if (!buffer.Dump(&slices).ok()) return {};
    std::string bytes;
    for (const grpc::Slice& slice : slices) {
      bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
    }
    return bytes;
  }
  bool Await() {
    void* tag = nullptr;
    bool ok = false;
    queue_.Next(&tag, &ok);
    return ok;
  }

  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  bool is_finished_ = false;
};

// Sends `messages` on a call of `method` and returns its status.
inline grpc::Status SendRaw(const std::shared_ptr<grpc::Channel>& channel,
                            const std::string& method, const std::vector<std::string>& messages) {
  RawCall call(channel, method);
  for (const std::string& message : messages) {
    if (!call.Write(message)) break;
  }
  return call.Finish();
}

}  // namespace cipherd::server::testing
