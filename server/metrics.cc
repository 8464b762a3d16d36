#include "server/metrics.h"

#include <exception>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "prometheus/text_serializer.h"
#include "server/engine_collector.h"
#include "server/version.h"

namespace cipherd::server {
namespace {

// Those that hold a connection open and silent must not keep the others from their page: there are
// more threads than scrapers, and each is given back after this time.
constexpr char kScrapeThreads[] = "4";
constexpr char kSilenceMilliseconds[] = "2000";

// Upper bounds in seconds, 10 µs to 100 s, three a decade.
const prometheus::Histogram::BucketBoundaries& SecondsBuckets() {
  static const auto* const buckets = [] {
    auto* bounds = new prometheus::Histogram::BucketBoundaries;
    for (double decade = 1e-5; decade < 50; decade *= 10) {
      for (double step : {1.0, 2.0, 5.0}) bounds->push_back(decade * step);
    }
    bounds->push_back(100);
    return bounds;
  }();
  return *buckets;
}

}  // namespace

Metrics::Metrics()
    : registry_(std::make_shared<prometheus::Registry>()),
      rpc_seconds_(prometheus::BuildHistogram()
                       .Name("cipherd_rpc_seconds")
                       .Help("Duration of RPCs by method and status code")
                       .Register(*registry_)),
      stage_seconds_(prometheus::BuildHistogram()
                         .Name("cipherd_stage_seconds")
                         .Help("Time of evaluations in each stage, by program")
                         .Register(*registry_)) {
  prometheus::BuildGauge()
      .Name("cipherd_build_info")
      .Help("1, labelled with the version of this build")
      .Register(*registry_)
      .Add({{"version", kVersion}})
      .Set(1);
}

Metrics::~Metrics() { StopServing(); }

void Metrics::ObserveRpc(std::string_view method, absl::StatusCode code, double seconds) {
  prometheus::Histogram* histogram;
  {
    absl::MutexLock lock(&mu_);
    prometheus::Histogram*& known = rpc_histograms_[{std::string(method), code}];
    if (known == nullptr) {
      known = &rpc_seconds_.Add(
          {{"method", std::string(method)}, {"code", absl::StatusCodeToString(code)}},
          SecondsBuckets());
    }
    histogram = known;
  }
  histogram->Observe(seconds);
}

void Metrics::ObserveStages(const std::string& program, const engine::StageTimes& times) {
  const StageHistograms& histograms = HistogramsOf(program);
  for (size_t i = 0; i < histograms.size(); ++i) {
    histograms[i]->Observe(times.*engine::kStages[i].seconds);
  }
}

const Metrics::StageHistograms& Metrics::HistogramsOf(const std::string& program) {
  absl::MutexLock lock(&mu_);
  const auto [it, is_new] = stage_histograms_.try_emplace(program);
  if (is_new) {
    for (size_t i = 0; i < it->second.size(); ++i) {
      const std::string stage(engine::kStages[i].name);
      it->second[i] =
          &stage_seconds_.Add({{"program", program}, {"stage", stage}}, SecondsBuckets());
    }
  }
  return it->second;
}

void Metrics::CollectFrom(const engine::Engine& engine) {
  engine_collector_ = std::make_shared<EngineCollector>(engine);
  if (exposer_ != nullptr) exposer_->RegisterCollectable(engine_collector_);
}

absl::StatusOr<int> Metrics::Serve(const std::string& address) {
  // The library reports a failure to bind by an exception; it ends here.
  try {
    exposer_ = std::make_unique<prometheus::Exposer>(std::vector<std::string>{
        "listening_ports", address, "num_threads", kScrapeThreads, "request_timeout_ms",
        kSilenceMilliseconds, "keep_alive_timeout_ms", kSilenceMilliseconds});
  } catch (const std::exception& error) {
    return absl::UnavailableError(
        absl::StrCat("metrics: cannot listen on ", address, ": ", error.what()));
  }
  exposer_->RegisterCollectable(registry_);
  if (engine_collector_ != nullptr) exposer_->RegisterCollectable(engine_collector_);
  return exposer_->GetListeningPorts().front();
}

void Metrics::StopServing() {
  exposer_.reset();
  engine_collector_.reset();
}

std::string Metrics::Text() const {
  std::vector<prometheus::MetricFamily> families = registry_->Collect();
  if (engine_collector_ != nullptr) {
    for (prometheus::MetricFamily& family : engine_collector_->Collect()) {
      families.push_back(std::move(family));
    }
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace cipherd::server
