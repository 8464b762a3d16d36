// The process as Prometheus' own client libraries show it, under their names: CPU time, memory,
// open files, start.
#pragma once

#include <optional>
#include <vector>

#include "prometheus/collectable.h"
#include "prometheus/metric_family.h"

namespace cipherd::server {

// Read from /proc when a scrape asks; what cannot be read is left out. Thread-safe.
class ProcessCollector final : public prometheus::Collectable {
 public:
  ProcessCollector();

  std::vector<prometheus::MetricFamily> Collect() const override;

 private:
  // Read once: the kernel derives it from the clock, and a step of that is not a restart.
  const std::optional<double> start_seconds_;
};

}  // namespace cipherd::server
