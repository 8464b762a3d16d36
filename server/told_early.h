// Methods of one message from the client whose calls the service is told of before it has come.
//
//   class Service final : public ToldEarly<v1::EvaluationService, v1::EvaluationService::Service> {
//     Service() { Tell("GetProgram", [this](grpc::CallbackServerContext* context) { … }); }
//
// gRPC receives the message of such a call before it tells of it, however long that takes: until
// then no bound, deadline or stall watch of ours applies, and in version 1.51 its own budget of
// memory does not either. A method that is "streamed" here, which the peer cannot tell, is told of
// with its headers, and its reactor reads the message.
#pragma once

#include <functional>
#include <utility>

#include "google/protobuf/descriptor.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"

namespace cipherd::server {

// `Generated` is the class of the service that grpc_cpp_plugin writes, `Base` what is derived from.
template <typename Generated, typename Base>
class ToldEarly : public Base {
 public:
  using Bytes = grpc::ByteBuffer;
  using Reactor = grpc::ServerBidiReactor<Bytes, Bytes>;

 protected:
  // Calls of `method` have the reactor that `make` gives.
  void Tell(const char* method, std::function<Reactor*(grpc::CallbackServerContext*)> make) {
    const int index = google::protobuf::DescriptorPool::generated_pool()
                          ->FindServiceByName(Generated::service_full_name())
                          ->FindMethodByName(method)
                          ->index();
    this->MarkMethodStreamed(index, nullptr);
    this->MarkMethodRawCallback(
        index, new grpc::internal::CallbackBidiHandler<Bytes, Bytes>(std::move(make)));
  }
};

}  // namespace cipherd::server
