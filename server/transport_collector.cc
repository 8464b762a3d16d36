#include "server/transport_collector.h"

#include <utility>

#include "server/metric_families.h"

namespace cipherd::server {

std::vector<prometheus::MetricFamily> TransportCollector::Collect() const {
  using Verdict = ConnectionTable::Verdict;
  std::vector<prometheus::MetricFamily> families;
  families.push_back(Gauge("cipherd_connections", "Open connections, but for the health port's")
                         .Add({}, static_cast<double>(state_.connections.CountOpen()))
                         .Take());
  families.push_back(Gauge("cipherd_connections_limit", "Bound of cipherd_connections")
                         .Add({}, state_.connections.limits().max_connections)
                         .Take());
  families.push_back(
      Counter("cipherd_connections_refused_total",
              "Connections that were closed at once: all peers, or theirs, had as many as may be")
          .Add({{"bound", "all"}},
               static_cast<double>(state_.connections.CountOf(Verdict::kTooMany)))
          .Add({{"bound", "peer"}},
               static_cast<double>(state_.connections.CountOf(Verdict::kTooManyOfPeer)))
          .Take());
  FamilyBuilder in_flight =
      Gauge("cipherd_calls_in_flight",
            "Calls under way: uploads and evaluations (work), what only asks (lookup), health");
  FamilyBuilder limit = Gauge("cipherd_calls_limit", "Bound of cipherd_calls_in_flight");
  for (const auto& [kind, gate] :
       {std::pair("work", &state_.work), std::pair("lookup", &state_.lookups),
        std::pair("health", &state_.checks)}) {
    in_flight.Add({{"kind", kind}}, gate->under_way());
    limit.Add({{"kind", kind}}, gate->limits().max_calls);
  }
  families.push_back(in_flight.Take());
  families.push_back(limit.Take());
  return families;
}

}  // namespace cipherd::server
