// The engine's counts and gauges as Prometheus metrics, read when a scrape asks.
#pragma once

#include <vector>

#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"
#include "server/engine/engine.h"

namespace cipherd::server {

// Requests by program and outcome (one snapshot of the ledger, so that accepted = succeeded +
// failed + cancelled + rejected + in flight holds within a scrape); instances, queues, pinned
// trees, key bytes, bytes of the memory pools, workers, device. What is by program is summed over
// its versions; only readiness has a row a version. Thread-safe; the engine outlives it.
class EngineCollector final : public prometheus::Collectable {
 public:
  explicit EngineCollector(const engine::Engine& engine) : engine_(engine) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const engine::Engine& engine_;
};

}  // namespace cipherd::server
