#include "server/probe.h"

#include <chrono>
#include <fstream>
#include <iterator>
#include <memory>

#include "absl/strings/str_cat.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "health.grpc.pb.h"
#include "proto/grpc_status/grpc_status.h"

namespace cipherd::server {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

absl::Status Probe(const ProbeOptions& options) {
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (!options.ca_file.empty()) {
    std::ifstream file(options.ca_file, std::ios::binary);
    if (!file) return absl::NotFoundError(absl::StrCat("cannot read ", options.ca_file));
    grpc::SslCredentialsOptions tls;
    tls.pem_root_certs.assign(std::istreambuf_iterator<char>(file), {});
    credentials = grpc::SslCredentials(tls);
  }
  const std::unique_ptr<Health::Stub> stub =
      Health::NewStub(grpc::CreateChannel(options.address, credentials));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       absl::ToChronoMilliseconds(options.timeout));
  HealthCheckRequest request;
  request.set_service(options.service);
  HealthCheckResponse response;
  const grpc::Status status = stub->Check(&context, request, &response);
  if (!status.ok()) return FromGrpcStatus(status);
  if (response.status() == HealthCheckResponse::SERVING) return absl::OkStatus();
  return absl::FailedPreconditionError(HealthCheckResponse::ServingStatus_Name(response.status()));
}

}  // namespace cipherd::server
