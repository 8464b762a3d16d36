#include "server/probe.h"

#include <chrono>
#include <fstream>
#include <iterator>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "health.grpc.pb.h"
#include "proto/grpc_status/grpc_status.h"

namespace cipherd::server {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

namespace {

absl::Status ReadPem(const std::string& path, std::string& text) {
  if (path.empty()) return absl::OkStatus();
  std::ifstream file(path, std::ios::binary);
  if (!file) return absl::NotFoundError(absl::StrCat("cannot read ", path));
  text.assign(std::istreambuf_iterator<char>(file), {});
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeProbeCredentials(
    const ProbeOptions& options) {
  if (options.ca_file.empty()) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions tls;
  CIPHERD_RETURN_IF_ERROR(ReadPem(options.ca_file, tls.pem_root_certs));
  CIPHERD_RETURN_IF_ERROR(ReadPem(options.certificate_file, tls.pem_cert_chain));
  CIPHERD_RETURN_IF_ERROR(ReadPem(options.key_file, tls.pem_private_key));
  return grpc::SslCredentials(tls);
}

}  // namespace

absl::Status Probe(const ProbeOptions& options) {
  CIPHERD_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::ChannelCredentials> credentials,
                           MakeProbeCredentials(options));
  grpc::ChannelArguments arguments;
  if (!options.server_name.empty()) arguments.SetSslTargetNameOverride(options.server_name);
  // What is asked is near, and a proxy in the environment of the process is for what is not.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  const std::unique_ptr<Health::Stub> stub =
      Health::NewStub(grpc::CreateCustomChannel(options.address, credentials, arguments));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       absl::ToChronoMilliseconds(options.timeout));
  HealthCheckRequest request;
  request.set_service(options.service);
  HealthCheckResponse response;
  const grpc::Status status = stub->Check(&context, request, &response);
  if (!status.ok()) {
    const absl::Status cause = FromGrpcStatus(status);
    return absl::Status(cause.code(),
                        absl::StrCat(options.address, ": ", std::string(cause.message())));
  }
  if (response.status() == HealthCheckResponse::SERVING) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      options.address, ": ", HealthCheckResponse::ServingStatus_Name(response.status())));
}

}  // namespace cipherd::server
