#include "client/python/bindings/session.h"

#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>
#include <openssl/crypto.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "client/bulk_evaluation.h"
#include "client/files/key_directory.h"
#include "client/files/program_file.h"
#include "client/files/secret_key_file.h"
#include "client/python/bindings/arrays.h"
#include "client/python/bindings/cipher.h"
#include "client/python/bindings/interruptible.h"
#include "client/python/bindings/program.h"
#include "client/python/bindings/status_error.h"
#include "core/base/status_macros.h"
#include "core/secret/random.h"

namespace cipherd::python {
namespace {

namespace nb = nanobind;

using CancellationPtr = std::shared_ptr<client::Cancellation>;
using Progress = nb::typed<nb::callable, nb::object(uint64_t, uint64_t)>;
// With an EvaluationTuple or an exception.
using Callback = nb::typed<nb::callable, nb::object(nb::object)>;
// With the name of an output, the first of its items, and their array.
using OnOutput = nb::typed<nb::callable, nb::object(std::string, int64_t, OutputArray)>;

std::unique_ptr<SessionObject> Create(const ClientObject& client, const Program& program,
                                      const std::optional<std::string>& secret_key_path,
                                      const std::string& key_set_id) {
  auto object = std::make_unique<SessionObject>();
  object->owner = std::make_shared<CallOwner>("session", client.connection->owner);
  object->open = std::make_shared<OpenSession>();
  object->open->connection = client.connection;
  object->key_set_id = key_set_id;
  object->open->session =
      RunWork(object->owner, [&]() -> absl::StatusOr<std::unique_ptr<client::Session>> {
        const client::ProgramPtr& description = program.stored.program;
        if (secret_key_path.has_value()) {
          CIPHERD_ASSIGN_OR_RETURN(secret::SecretKey secret_key,
                                   client::ReadSecretKeyFile(*secret_key_path, program.policy));
          return client::Session::Create(*client.connection->client, description,
                                         std::move(secret_key));
        }
        CIPHERD_ASSIGN_OR_RETURN(secret::Random random, secret::Random::FromOsEntropy());
        return client::Session::Create(*client.connection->client, description,
                                       secret::SecretKey::Generate(description->context, random));
      });
  return object;
}

// The session, which lives as long as what is returned.
std::shared_ptr<OpenSession> Open(const SessionObject& self) {
  if (self.open == nullptr) {
    throw StatusError(absl::FailedPreconditionError("session: closed"));
  }
  return self.open;
}

// One change of the keys at a time.
class KeyChange {
 public:
  explicit KeyChange(SessionObject& session) : session_(session) {
    if (std::exchange(session_.keys_are_changing, true)) {
      throw StatusError(absl::FailedPreconditionError(
          "session: its keys are being uploaded or dropped by another thread"));
    }
  }
  ~KeyChange() { session_.keys_are_changing = false; }
  KeyChange(const KeyChange&) = delete;
  KeyChange& operator=(const KeyChange&) = delete;

 private:
  SessionObject& session_;
};

void UploadKeys(SessionObject& self, const std::optional<Progress>& progress,
                std::optional<double> timeout_seconds) {
  const std::shared_ptr<OpenSession> open = Open(self);
  const std::optional<absl::Duration> timeout = ToTimeout(timeout_seconds);
  const KeyChange change(self);
  // What `progress` raised, which ends the upload.
  std::optional<nb::python_error> raised;
  const auto upload = [&](const CancellationPtr& cancellation) {
    client::Session::Progress report;
    if (progress.has_value()) {
      report = [&](uint64_t sent_bytes, uint64_t total_bytes) {
        const nb::gil_scoped_acquire gil;
        const CallbackScope callback;
        if (raised.has_value()) return;
        try {
          (*progress)(sent_bytes, total_bytes);
        } catch (nb::python_error& error) {
          raised.emplace(error);
          cancellation->Cancel();
        }
      };
    }
    return open->session->UploadKeys(report, {.timeout = timeout, .cancellation = cancellation});
  };
  try {
    RunCall(self.owner, upload);
  } catch (const StatusError&) {
    if (raised.has_value()) throw *raised;
    throw;
  }
  // Raised in the last report, when nothing was left to cancel.
  self.key_set_id = open->session->key_set_id();
  if (raised.has_value()) throw *raised;
}

void DropKeys(SessionObject& self, std::optional<double> timeout_seconds) {
  const std::shared_ptr<OpenSession> open = Open(self);
  const std::optional<absl::Duration> timeout = ToTimeout(timeout_seconds);
  const KeyChange change(self);
  if (self.key_set_id.empty()) {
    throw StatusError(absl::FailedPreconditionError("session: it has uploaded no keys"));
  }
  RunCall(self.owner, [&](const CancellationPtr& cancellation) {
    return open->connection->client->DropKeys(self.key_set_id,
                                              {.timeout = timeout, .cancellation = cancellation});
  });
  self.key_set_id.clear();
}

client::BulkEvaluation::Target TargetOf(const SessionObject& self, const OpenSession& open) {
  return {*open.connection->client, open.session->cipher(), self.key_set_id};
}

client::BulkEvaluation::Options ToOptions(const std::string& request_id,
                                          std::optional<double> timeout_seconds, int in_flight,
                                          const CancellationPtr& cancellation) {
  return {.request_id = request_id,
          .timeout = ToTimeout(timeout_seconds),
          .in_flight = in_flight,
          .cancellation = cancellation};
}

using EvaluationTuple = std::tuple<OutputArrays, std::vector<ReportTuple>>;

EvaluationTuple ToTuple(client::BulkResult result) {
  std::vector<ReportTuple> reports;
  for (client::RequestReport& report : result.requests) {
    reports.push_back(ToReport(std::move(report.request_id), report.stage_times, report.sent_bytes,
                               report.received_bytes));
  }
  return {ToArrays(std::move(result.outputs)), std::move(reports)};
}

EvaluationTuple Evaluate(const SessionObject& self, const InputArrays& inputs,
                         const std::string& request_id, std::optional<double> timeout_seconds,
                         int in_flight) {
  const std::shared_ptr<OpenSession> open = Open(self);
  const LiveCall call(self.owner);
  absl::StatusOr<client::BulkResult> result;
  absl::Notification has_ended;
  ThrowIfError(client::BulkEvaluation::Start(
      TargetOf(self, *open), client::WorkPool::OfProcess(), ToItems(inputs),
      ToOptions(request_id, timeout_seconds, in_flight, call.cancellation()),
      [&](absl::StatusOr<client::BulkResult> outcome) {
        result = std::move(outcome);
        has_ended.Notify();
      }));
  AwaitInterruptibly(has_ended, *call.cancellation());
  return ToTuple(ValueOrThrow(std::move(result)));
}

// An evaluation that nobody waits for: what it needs until its callback has returned.
struct Pending {
  std::shared_ptr<OpenSession> open;
  // May be none.
  nb::object on_output;
  nb::object callback;
  std::unique_ptr<LiveCall> call;
};

void ReportPart(Pending& pending, client::OutputPart part) {
  const nb::gil_scoped_acquire gil;
  // The interpreter waits for its calls before it ends: this does not happen.
  if (!gil) return;
  const CallbackScope in_callback;
  try {
    pending.on_output(part.output, part.first_item, ToArray(std::move(part.items)));
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("cipherd: callback of an output");
  }
}

// With the outputs, or the exception that they are not there for.
void Report(Pending& pending, absl::StatusOr<client::BulkResult> outcome) {
  const nb::gil_scoped_acquire gil;
  // The interpreter waits for its calls before it ends: this does not happen.
  if (!gil) return;
  const CallbackScope in_callback;
  try {
    const nb::object result =
        outcome.ok() ? nb::cast(ToTuple(*std::move(outcome))) : MakeException(outcome.status());
    pending.callback(result);
  } catch (nb::python_error& error) {
    error.discard_as_unraisable("cipherd: callback of an evaluation");
  }
  pending.on_output = nb::object();
  pending.callback = nb::object();
}

// Calls `callback` once, on a thread of cipherd's, with what Evaluate returns or would raise, and
// before it `on_output`, where there is one, with each output of each request as it comes. What
// this raises itself comes without a callback. Returns what cancels the evaluation.
CancellationPtr StartEvaluation(const SessionObject& self, const InputArrays& inputs,
                                const std::string& request_id,
                                std::optional<double> timeout_seconds, int in_flight,
                                Callback callback, std::optional<OnOutput> on_output) {
  const std::shared_ptr<OpenSession> open = Open(self);
  const auto pending = std::make_shared<Pending>();
  pending->open = open;
  pending->call = std::make_unique<LiveCall>(self.owner);
  const CancellationPtr cancellation = pending->call->cancellation();
  client::BulkEvaluation::Options options =
      ToOptions(request_id, timeout_seconds, in_flight, cancellation);
  pending->callback = std::move(callback);
  if (on_output.has_value()) {
    pending->on_output = *std::move(on_output);
    options.on_output = [pending](client::OutputPart part) {
      ReportPart(*pending, std::move(part));
    };
  }
  ThrowIfError(client::BulkEvaluation::Start(TargetOf(self, *open), client::WorkPool::OfProcess(),
                                             ToItems(inputs), options,
                                             [pending](absl::StatusOr<client::BulkResult> outcome) {
                                               Report(*pending, std::move(outcome));
                                               pending->open.reset();
                                               // Whoever closes waits for this; nothing of the
                                               // session is used afterwards.
                                               pending->call.reset();
                                             }));
  return cancellation;
}

// Keeps a secret key that is there where it is this session's own.
absl::Status SaveSecretKey(const secret::SecretKey& secret_key, const std::string& path,
                           ckks::SecurityPolicy policy) {
  const absl::Status written = client::WriteSecretKeyFile(path, secret_key);
  if (!absl::IsAlreadyExists(written)) return written;
  const absl::StatusOr<secret::SecretKey> found = client::ReadSecretKeyFile(path, policy);
  const auto own = secret_key.coefficients();
  const bool is_own = found.ok() && found->context()->id() == secret_key.context()->id() &&
                      CRYPTO_memcmp(found->coefficients().data(), own.data(), own.size()) == 0;
  return is_own ? absl::OkStatus() : written;
}

void Save(const SessionObject& self, const Program& program, const std::string& directory) {
  const std::shared_ptr<OpenSession> open = Open(self);
  const std::string key_set_id = self.key_set_id;
  RunWork(self.owner, [&]() -> absl::Status {
    const client::KeyDirectory keys(directory);
    CIPHERD_RETURN_IF_ERROR(keys.Create());
    // First: where there is another secret key, nothing beside it may change.
    CIPHERD_RETURN_IF_ERROR(
        SaveSecretKey(open->session->secret_key(), keys.secret_key_path(), program.policy));
    CIPHERD_RETURN_IF_ERROR(client::WriteProgramFile(keys.program_path(), program.stored.message,
                                                     program.description().requested_version));
    return key_set_id.empty() ? absl::OkStatus() : keys.WriteKeySetId(key_set_id);
  });
}

}  // namespace

void BindSession(nb::module_& module) {
  nb::class_<client::Cancellation>(module, "Cancellation")
      .def("cancel", [](const CancellationPtr& self) {
        const nb::gil_scoped_release release;
        self->Cancel();
      });
  nb::class_<SessionObject>(module, "Session")
      .def_static("create", &Create, nb::arg("client"), nb::arg("program"),
                  nb::arg("secret_key_path").none(), nb::arg("key_set_id"))
      .def_prop_ro("key_set_id", [](const SessionObject& self) { return self.key_set_id; })
      .def("upload_keys", &UploadKeys, nb::arg("progress").none(), nb::arg("timeout").none())
      .def("drop_keys", &DropKeys, nb::arg("timeout").none())
      .def("evaluate", &Evaluate, nb::arg("inputs"), nb::arg("request_id"),
           nb::arg("timeout").none(), nb::arg("in_flight"))
      .def("start_evaluation", &StartEvaluation, nb::arg("inputs"), nb::arg("request_id"),
           nb::arg("timeout").none(), nb::arg("in_flight"), nb::arg("callback"),
           nb::arg("on_output").none())
      .def(
          "encrypt",
          [](const SessionObject& self, const InputArrays& inputs) {
            return EncryptPayload(self.owner, Open(self)->session->cipher(), inputs);
          },
          nb::arg("inputs"))
      .def(
          "decrypt",
          [](const SessionObject& self, const nb::bytes& payload,
             const secret::FloodingOptions* flooding) {
            return DecryptPayload(self.owner, Open(self)->session->cipher(), payload, flooding);
          },
          nb::arg("payload"), nb::arg("flooding").none())
      .def("save", &Save, nb::arg("program"), nb::arg("directory"))
      .def("close", [](SessionObject& self) {
        CloseCalls(*self.owner);
        self.open.reset();
      });
}

}  // namespace cipherd::python
