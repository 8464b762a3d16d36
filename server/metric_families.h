// Families of metrics that are made anew at each scrape.
//
//   families.push_back(Gauge("cipherd_queue_requests", "Evaluations that wait for an instance")
//                          .Add({{"program", name}}, 3)
//                          .Take());
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "prometheus/metric_family.h"

namespace cipherd::server {

// One family being filled. Used by one thread.
class FamilyBuilder {
 public:
  using Labels = std::initializer_list<std::pair<const char*, std::string_view>>;

  FamilyBuilder(std::string name, std::string help, prometheus::MetricType type) {
    family_.name = std::move(name);
    family_.help = std::move(help);
    family_.type = type;
  }

  FamilyBuilder& Add(Labels labels, double value) {
    prometheus::ClientMetric& metric = family_.metric.emplace_back();
    for (const auto& [name, text] : labels) metric.label.push_back({name, std::string(text)});
    if (family_.type == prometheus::MetricType::Counter) {
      metric.counter.value = value;
    } else {
      metric.gauge.value = value;
    }
    return *this;
  }

  prometheus::MetricFamily Take() { return std::move(family_); }

 private:
  prometheus::MetricFamily family_;
};

inline FamilyBuilder Counter(std::string name, std::string help) {
  return FamilyBuilder(std::move(name), std::move(help), prometheus::MetricType::Counter);
}
inline FamilyBuilder Gauge(std::string name, std::string help) {
  return FamilyBuilder(std::move(name), std::move(help), prometheus::MetricType::Gauge);
}

}  // namespace cipherd::server
