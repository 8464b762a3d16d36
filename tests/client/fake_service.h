// A daemon for client tests, in process: serves one program, "echo", that returns what it is given,
// and can be told to misbehave.
//
//   FakeService service;
//   ASSERT_OK_AND_ASSIGN(auto client, Client::Connect(service.ClientOptions()));
#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "cipherd/v1/evaluation.grpc.pb.h"
#include "client/client_options.h"
#include "grpcpp/server.h"
#include "proto/codec/known_context.h"

namespace cipherd::client {

class FakeService final : public v1::EvaluationService::Service {
 public:
  // Ring degree 2^8, insecure: 4 items of 16 elements in, the same out; keys: relinearization,
  // rotation(1).
  FakeService();
  ~FakeService() override;

  // Ends every call and waits for their handlers: what the functions below refer to must be there
  // until then, also where the client has given up. The destructor stops.
  void Stop();

  // For this service, with leave for its insecure context.
  client::ClientOptions ClientOptions() const;

  // Changes an answer before it is sent.
  std::function<void(v1::GetProgramResponse&)> change_program;
  std::function<void(v1::PutKeysResponse&)> change_put_keys;
  std::function<void(v1::EvaluateResponse&)> change_evaluation;
  // Fails every evaluation with this.
  absl::Status evaluation_error;
  // Called at the end of each streamed one, behind its outputs; fails it with what it returns.
  // (This service knows of no early outputs, as older daemons.)
  std::function<absl::Status(grpc::ServerContext& call)> behind_outputs;
  // Sends the stage times of streamed ones before the outputs, where they have no place.
  bool sends_times_first = false;
  // Called at the beginning of each unary evaluation, by many threads at once; fails it with what
  // it returns. The call that it is given is cancelled once the client has done so.
  std::function<absl::Status(grpc::ServerContext& call)> before_evaluation;
  // Stated limits; small ones make the client use streams.
  v1::ServerInfo info;

  // What came: the last metadata "authorization", and how many evaluations by which call.
  std::string authorization();
  int unary_count();
  int stream_count();
  // Sets that were uploaded and not dropped.
  int key_set_count();
  // Calls about key sets, with what a gateway would have routed them by: "DropKeys <metadata>".
  std::vector<std::string> routes();
  // Of the last upload.
  std::string upload_id();

  grpc::Status GetServerInfo(grpc::ServerContext* context, const v1::GetServerInfoRequest* request,
                             v1::ServerInfo* response) override;
  grpc::Status ListPrograms(grpc::ServerContext* context, const v1::ListProgramsRequest* request,
                            v1::ListProgramsResponse* response) override;
  grpc::Status GetProgram(grpc::ServerContext* context, const v1::GetProgramRequest* request,
                          v1::GetProgramResponse* response) override;
  grpc::Status PutKeys(grpc::ServerContext* context, grpc::ServerReader<v1::PutKeysRequest>* reader,
                       v1::PutKeysResponse* response) override;
  grpc::Status DropKeys(grpc::ServerContext* context, const v1::DropKeysRequest* request,
                        v1::DropKeysResponse* response) override;
  grpc::Status Evaluate(grpc::ServerContext* context, const v1::EvaluateRequest* request,
                        v1::EvaluateResponse* response) override;
  grpc::Status EvaluateStream(grpc::ServerContext* context,
                              grpc::ServerReaderWriter<v1::EvaluateStreamResponse,
                                                       v1::EvaluateStreamRequest>* stream) override;

 private:
  v1::GetProgramResponse DescribeEcho() const;
  absl::Status CheckKeySet(const std::string& id);
  void RecordRoute(const std::string& method, const grpc::ServerContext& context)
      ABSL_LOCKS_EXCLUDED(mu_);

  codec::KnownContextPtr context_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;

  absl::Mutex mu_;
  std::string authorization_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> routes_ ABSL_GUARDED_BY(mu_);
  std::string upload_id_ ABSL_GUARDED_BY(mu_);
  int unary_count_ ABSL_GUARDED_BY(mu_) = 0;
  int stream_count_ ABSL_GUARDED_BY(mu_) = 0;
  std::set<std::string> key_sets_ ABSL_GUARDED_BY(mu_);
};

}  // namespace cipherd::client
