// What the transport has under way, read when a scrape asks.
#pragma once

#include <vector>

#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"
#include "server/call_gate.h"
#include "server/connection_table.h"

namespace cipherd::server {

// What there is to look at. All outlive the collector.
struct TransportState {
  const ConnectionTable& connections;
  const CallGate& work;
  const CallGate& lookups;
  const CallGate& checks;
};

// Thread-safe.
class TransportCollector final : public prometheus::Collectable {
 public:
  explicit TransportCollector(const TransportState& state) : state_(state) {}

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  const TransportState state_;
};

}  // namespace cipherd::server
