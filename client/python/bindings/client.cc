#include "client/python/bindings/client.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/files/values_file.h"
#include "client/python/bindings/interruptible.h"
#include "client/python/bindings/program.h"
#include "client/python/bindings/status_error.h"
#include "core/base/status_macros.h"

namespace cipherd::python {
namespace {

namespace nb = nanobind;

using CancellationPtr = std::shared_ptr<client::Cancellation>;

// As the arguments of cipherd.connect.
struct ConnectArguments {
  std::string target;
  std::optional<std::tuple<std::string, std::string, std::string, std::string>> tls;
  bool allow_plain_text_to_remote;
  std::string bearer_token;
  std::string bearer_token_file;
  double timeout_seconds;
  bool allow_insecure_contexts;
};

client::ClientOptions ToOptions(const ConnectArguments& arguments) {
  client::ClientOptions options;
  options.target = arguments.target;
  if (arguments.tls.has_value()) {
    client::TlsOptions& tls = options.tls.emplace();
    std::tie(tls.ca_file, tls.certificate_file, tls.private_key_file, tls.server_name) =
        *arguments.tls;
  }
  options.allow_plain_text_to_remote = arguments.allow_plain_text_to_remote;
  options.bearer_token = arguments.bearer_token;
  options.bearer_token_file = arguments.bearer_token_file;
  options.connect_timeout = *ToTimeout(arguments.timeout_seconds);
  options.security_policy = PolicyOf(arguments.allow_insecure_contexts);
  return options;
}

std::unique_ptr<ClientObject> Connect(const ConnectArguments& arguments) {
  CheckGrpcIsOfThisProcess();
  const client::ClientOptions options = ToOptions(arguments);
  auto object = std::make_unique<ClientObject>();
  object->connection = std::make_shared<Connection>(std::make_shared<CallOwner>("client", nullptr),
                                                    options.security_policy);
  object->connection->client =
      RunCall(object->connection->owner, [&](const CancellationPtr& cancellation) {
        return client::Client::Connect(options, cancellation);
      });
  return object;
}

const client::Client& Open(const ClientObject& self) {
  if (self.connection->client == nullptr) {
    throw StatusError(absl::FailedPreconditionError("client: closed"));
  }
  return *self.connection->client;
}

// version, device, device_name, limits in bytes: chunk, unary, request, key set; insecure contexts
using ServerInfo = std::tuple<std::string, std::string, std::string,
                              std::tuple<uint64_t, uint64_t, uint64_t, uint64_t>, bool>;

ServerInfo GetServerInfo(const ClientObject& self) {
  const v1::ServerInfo& info = Open(self).server_info();
  const v1::ServerInfo::Limits& limits = info.limits();
  return {info.version(),
          info.device(),
          info.device_name(),
          {limits.max_chunk_bytes(), limits.max_unary_bytes(), limits.max_request_bytes(),
           limits.max_key_set_bytes()},
          info.insecure_contexts_allowed()};
}

// name, version, description, ready
std::vector<std::tuple<std::string, uint32_t, std::string, bool>> ListPrograms(
    const ClientObject& self, std::optional<double> timeout_seconds) {
  const client::Client& client = Open(self);
  const std::optional<absl::Duration> timeout = ToTimeout(timeout_seconds);
  const std::vector<v1::ProgramSummary> summaries =
      RunCall(self.connection->owner, [&](const CancellationPtr& cancellation) {
        return client.ListPrograms({.timeout = timeout, .cancellation = cancellation});
      });
  std::vector<std::tuple<std::string, uint32_t, std::string, bool>> programs;
  for (const v1::ProgramSummary& summary : summaries) {
    programs.emplace_back(summary.name(), summary.version(), summary.description(),
                          summary.ready());
  }
  return programs;
}

Program GetProgram(const ClientObject& self, const std::string& name, uint32_t version,
                   std::optional<double> timeout_seconds) {
  const client::Client& client = Open(self);
  const ckks::SecurityPolicy policy = self.connection->policy;
  const std::optional<absl::Duration> timeout = ToTimeout(timeout_seconds);
  return RunCall(
      self.connection->owner, [&](const CancellationPtr& cancellation) -> absl::StatusOr<Program> {
        Program program = {.policy = policy};
        CIPHERD_ASSIGN_OR_RETURN(
            program.stored.message,
            client.GetProgramMessage(name, version,
                                     {.timeout = timeout, .cancellation = cancellation}));
        CIPHERD_ASSIGN_OR_RETURN(
            program.stored.program,
            client::ProgramDescription::FromMessage(program.stored.message, policy, version));
        return program;
      });
}

void DropKeys(const ClientObject& self, const std::string& key_set_id,
              std::optional<double> timeout_seconds) {
  const client::Client& client = Open(self);
  const std::optional<absl::Duration> timeout = ToTimeout(timeout_seconds);
  RunCall(self.connection->owner, [&](const CancellationPtr& cancellation) {
    return client.DropKeys(key_set_id, {.timeout = timeout, .cancellation = cancellation});
  });
}

// The outputs' payload, and the request's report.
std::tuple<nb::bytes, ReportTuple> EvaluatePayload(const ClientObject& self, const Program& program,
                                                   const std::string& key_set_id,
                                                   const nb::bytes& payload,
                                                   const std::string& request_id,
                                                   std::optional<double> timeout_seconds) {
  const client::Client& client = Open(self);
  const client::ProgramDescription& description = program.description();
  const std::optional<absl::Duration> timeout = ToTimeout(timeout_seconds);
  const std::span bytes(static_cast<const uint8_t*>(payload.data()), payload.size());
  client::EvaluationResult result;
  const std::string outputs =
      RunCall(self.connection->owner,
              [&](const CancellationPtr& cancellation) -> absl::StatusOr<std::string> {
                CIPHERD_ASSIGN_OR_RETURN(client::EncryptedValues values,
                                         client::DecodeValuesFile(bytes, "payload", description,
                                                                  description.input_signature, {}));
                CIPHERD_ASSIGN_OR_RETURN(
                    result, client.Evaluate({.program = program.stored.program,
                                             .key_set_id = key_set_id,
                                             .request_id = request_id,
                                             .inputs = std::move(values.tree)},
                                            {.timeout = timeout, .cancellation = cancellation}));
                values.tree = std::move(result.outputs);
                return client::EncodeValuesFile(values);
              });
  return {
      nb::bytes(outputs.data(), outputs.size()),
      ToReport(result.request_id, result.stage_times, result.sent_bytes, result.received_bytes)};
}

}  // namespace

void Connection::Disconnect() {
  // After fork(): gRPC's threads, which would be waited for, are the parent's.
  if (!owner->IsOfThisProcess()) [[maybe_unused]]
    const auto* left = client.release();
  client.reset();
}

std::optional<absl::Duration> ToTimeout(std::optional<double> seconds) {
  if (!seconds.has_value()) return std::nullopt;
  // Not a number is not greater.
  if (!(*seconds > 0)) {
    throw StatusError(InvalidInput(
        "timeout", absl::StrCat("expected a positive number of seconds, got ", *seconds)));
  }
  return absl::Seconds(*seconds);
}

ReportTuple ToReport(std::string request_id, const v1::StageTimes& stage_times, uint64_t sent_bytes,
                     uint64_t received_bytes) {
  return {std::move(request_id),
          {{"decode", stage_times.decode_seconds()},
           {"queue", stage_times.queue_seconds()},
           {"batch_wait", stage_times.batch_wait_seconds()},
           {"device_wait", stage_times.device_wait_seconds()},
           {"transfer_in", stage_times.transfer_in_seconds()},
           {"replay", stage_times.replay_seconds()},
           {"transfer_out", stage_times.transfer_out_seconds()},
           {"encode", stage_times.encode_seconds()}},
          sent_bytes,
          received_bytes};
}

void BindClient(nb::module_& module) {
  nb::class_<ClientObject>(module, "Client")
      .def_static(
          "connect",
          [](std::string target,
             std::optional<std::tuple<std::string, std::string, std::string, std::string>> tls,
             bool allow_plain_text_to_remote, std::string bearer_token,
             std::string bearer_token_file, double timeout, bool allow_insecure_contexts) {
            return Connect({std::move(target), std::move(tls), allow_plain_text_to_remote,
                            std::move(bearer_token), std::move(bearer_token_file), timeout,
                            allow_insecure_contexts});
          },
          nb::arg("target"), nb::arg("tls").none(), nb::arg("allow_plain_text_to_remote"),
          nb::arg("bearer_token"), nb::arg("bearer_token_file"), nb::arg("timeout"),
          nb::arg("allow_insecure_contexts"))
      .def_prop_ro("server_info", &GetServerInfo)
      .def("list_programs", &ListPrograms, nb::arg("timeout").none())
      .def("get_program", &GetProgram, nb::arg("name"), nb::arg("version"),
           nb::arg("timeout").none())
      .def("drop_keys", &DropKeys, nb::arg("key_set_id"), nb::arg("timeout").none())
      .def("evaluate_payload", &EvaluatePayload, nb::arg("program"), nb::arg("key_set_id"),
           nb::arg("payload"), nb::arg("request_id"), nb::arg("timeout").none())
      .def("close", [](ClientObject& self) {
        CloseCalls(*self.connection->owner);
        self.connection->Disconnect();
      });
}

}  // namespace cipherd::python
