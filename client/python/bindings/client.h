// A connection to a daemon.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "absl/time/time.h"
#include "client/client.h"
#include "client/python/bindings/live_calls.h"
#include "core/ckks/context_parameters.h"

namespace cipherd::python {

// Shared with sessions, which cannot outlive it.
struct Connection {
  Connection(std::shared_ptr<CallOwner> connection_owner, ckks::SecurityPolicy security_policy)
      : owner(std::move(connection_owner)), policy(security_policy) {}
  ~Connection() { Disconnect(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // No call is under way.
  void Disconnect();

  const std::shared_ptr<CallOwner> owner;
  const ckks::SecurityPolicy policy;
  // Null once closed.
  std::unique_ptr<client::Client> client;
};

using ConnectionPtr = std::shared_ptr<Connection>;

struct ClientObject {
  ConnectionPtr connection;
};

// Seconds of Python's; absent: the default. Throws for what is not positive.
std::optional<absl::Duration> ToTimeout(std::optional<double> seconds);

// request_id, seconds by stage, sent_bytes, received_bytes
using ReportTuple = std::tuple<std::string, std::map<std::string, double>, uint64_t, uint64_t>;
ReportTuple ToReport(std::string request_id, const v1::StageTimes& stage_times, uint64_t sent_bytes,
                     uint64_t received_bytes);

void BindClient(nanobind::module_& module);

}  // namespace cipherd::python
