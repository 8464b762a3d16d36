// The daemon's metrics, in one place, served over HTTP by prometheus-cpp.
//
//   Metrics metrics;
//   metrics.CollectFrom(engine);
//   metrics.ObserveRpc("Evaluate", absl::OkStatus(), 0.021);
//   CIPHERD_ASSIGN_OR_RETURN(int port, metrics.Serve("127.0.0.1:0"));
//
// Durations and RPCs are observed as they happen; counts of requests and gauges are read from the
// engine when a scrape asks, so that one scrape sees the ledger balance. Labels are methods, codes,
// reasons, stages and names of loaded programs: never a key, tenant, request or trace id.
//
// Names are Prometheus' (base units, `_total`), and a family's samples add up to something.
// Counters that alerts look at are there with 0 before the first event, since Prometheus does not
// see the first increment of a series that begins with it. Thread-safe.
#pragma once

#include <array>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "cipherd/v1/evaluation.pb.h"
#include "prometheus/counter.h"
#include "prometheus/exposer.h"
#include "prometheus/family.h"
#include "prometheus/gauge.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"
#include "server/engine/engine.h"
#include "server/engine/stage_times.h"
#include "server/transport_collector.h"

namespace cipherd::server {

class Metrics {
 public:
  Metrics();
  ~Metrics();

  // One RPC that has ended with `status`, as clients see it.
  void ObserveRpc(std::string_view method, const absl::Status& status, double seconds);
  // One evaluation that has succeeded, `seconds` after its header.
  void ObserveEvaluation(const std::string& program, double seconds,
                         const engine::StageTimes& times);

  // Evaluations of `program` will come: their histograms are there from now on.
  void AddProgram(const std::string& program);
  // `certificate`, a literal, is the first of its file that ends, then.
  void SetCertificateExpiry(std::string_view certificate, absl::Time expiry);
  // Whether the keys of tokens that the files hold are those in force; they were read.
  void SetTokenKeysInForce(bool in_force);
  // The programs were looked at again.
  void SetReloaded(bool successful);
  // Adds what the engine counts to every scrape. It outlives this, or StopServing.
  void CollectFrom(const engine::Engine& engine);
  // And what the transport has under way.
  void CollectFrom(const TransportState& transport);

  // Serves /metrics on host:port and returns the port. Unavailable where the address is taken.
  absl::StatusOr<int> Serve(const std::string& address);
  void StopServing();

  // What a scrape would get, in Prometheus' text format.
  std::string Text() const;

 private:
  struct ProgramHistograms {
    prometheus::Histogram* duration = nullptr;
    // One a stage, in the order of engine::kStages.
    std::array<prometheus::Histogram*, std::size(engine::kStages)> stages = {};
  };
  void Collect(std::shared_ptr<prometheus::Collectable> collectable);
  // Stays where it is and as it is.
  const ProgramHistograms& HistogramsOf(const std::string& program) ABSL_LOCKS_EXCLUDED(mu_);

  const std::shared_ptr<prometheus::Registry> registry_;
  prometheus::Family<prometheus::Histogram>& rpc_seconds_;
  prometheus::Family<prometheus::Histogram>& request_seconds_;
  prometheus::Family<prometheus::Histogram>& stage_seconds_;
  prometheus::Family<prometheus::Gauge>& certificate_expiry_;
  prometheus::Gauge& token_keys_in_force_;
  prometheus::Gauge& last_reload_successful_;
  // By reason, all there are.
  std::map<v1::ErrorReason, prometheus::Counter*> rpc_failures_;
  // What a family would hash and compare all labels for, at each observation.
  absl::Mutex mu_;
  std::map<std::pair<std::string, absl::StatusCode>, prometheus::Histogram*> rpc_histograms_
      ABSL_GUARDED_BY(mu_);
  std::map<std::string, ProgramHistograms> program_histograms_ ABSL_GUARDED_BY(mu_);
  // Asked at each scrape; the exposer has no hold on them.
  std::vector<std::shared_ptr<prometheus::Collectable>> collectables_;
  std::unique_ptr<prometheus::Exposer> exposer_;
};

}  // namespace cipherd::server
