// The daemon's metrics, in one place, served over HTTP by prometheus-cpp.
//
//   Metrics metrics;
//   metrics.CollectFrom(engine);
//   metrics.ObserveRpc("Evaluate", absl::StatusCode::kOk, 0.021);
//   CIPHERD_ASSIGN_OR_RETURN(int port, metrics.Serve("127.0.0.1:0"));
//
// Durations and RPCs are observed as they happen; counts of requests and gauges are read from the
// engine when a scrape asks, so that one scrape sees the ledger balance. Labels are methods, codes,
// stages and names of loaded programs: never a key, tenant or request id. Thread-safe.
#pragma once

#include <array>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "prometheus/exposer.h"
#include "prometheus/family.h"
#include "prometheus/histogram.h"
#include "prometheus/registry.h"
#include "server/engine/engine.h"
#include "server/engine/stage_times.h"

namespace cipherd::server {

class Metrics {
 public:
  Metrics();
  ~Metrics();

  // One RPC that has ended.
  void ObserveRpc(std::string_view method, absl::StatusCode code, double seconds);
  // One evaluation that has succeeded.
  void ObserveStages(const std::string& program, const engine::StageTimes& times);

  // Adds what the engine counts to every scrape. It outlives this, or StopServing.
  void CollectFrom(const engine::Engine& engine);

  // Serves /metrics on host:port and returns the port. Unavailable where the address is taken.
  absl::StatusOr<int> Serve(const std::string& address);
  void StopServing();

  // What a scrape would get, in Prometheus' text format.
  std::string Text() const;

 private:
  // One a stage, in the order of engine::kStages.
  using StageHistograms = std::array<prometheus::Histogram*, std::size(engine::kStages)>;
  // Stays where it is and as it is.
  const StageHistograms& HistogramsOf(const std::string& program) ABSL_LOCKS_EXCLUDED(mu_);

  const std::shared_ptr<prometheus::Registry> registry_;
  prometheus::Family<prometheus::Histogram>& rpc_seconds_;
  prometheus::Family<prometheus::Histogram>& stage_seconds_;
  // What a family would hash and compare all labels for, at each observation.
  absl::Mutex mu_;
  std::map<std::pair<std::string, absl::StatusCode>, prometheus::Histogram*> rpc_histograms_
      ABSL_GUARDED_BY(mu_);
  std::map<std::string, StageHistograms> stage_histograms_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<prometheus::Collectable> engine_collector_;
  std::unique_ptr<prometheus::Exposer> exposer_;
};

}  // namespace cipherd::server
