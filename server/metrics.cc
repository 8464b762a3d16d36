#include "server/metrics.h"

#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "prometheus/text_serializer.h"
#include "proto/codec/error_detail.h"
#include "server/engine_collector.h"
#include "server/process_collector.h"
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

std::map<v1::ErrorReason, prometheus::Counter*> AddFailureCounters(prometheus::Registry& registry) {
  auto& family = prometheus::BuildCounter()
                     .Name("cipherd_rpc_failures_total")
                     .Help("RPCs that failed, by the reason that the client is given")
                     .Register(registry);
  std::map<v1::ErrorReason, prometheus::Counter*> counters;
  const auto& reasons = *v1::ErrorReason_descriptor();
  for (int i = 0; i < reasons.value_count(); ++i) {
    const std::string name(absl::StripPrefix(reasons.value(i)->name(), "ERROR_REASON_"));
    counters[static_cast<v1::ErrorReason>(reasons.value(i)->number())] =
        &family.Add({{"reason", name}});
  }
  return counters;
}

}  // namespace

Metrics::Metrics()
    : registry_(std::make_shared<prometheus::Registry>()),
      rpc_seconds_(prometheus::BuildHistogram()
                       .Name("cipherd_rpc_duration_seconds")
                       .Help("Duration of RPCs, by method and status code")
                       .Register(*registry_)),
      request_seconds_(prometheus::BuildHistogram()
                           .Name("cipherd_request_duration_seconds")
                           .Help("Time of evaluations that succeeded, from header to the last byte "
                                 "handed to the transport, by program")
                           .Register(*registry_)),
      stage_seconds_(prometheus::BuildHistogram()
                         .Name("cipherd_stage_duration_seconds")
                         .Help("Time of evaluations in each stage, by program")
                         .Register(*registry_)),
      certificate_expiry_(prometheus::BuildGauge()
                              .Name("cipherd_tls_certificate_expiry_timestamp_seconds")
                              .Help("Unix time at which the first certificate of a file of the "
                                    "listener ends, as it was read")
                              .Register(*registry_)),
      token_keys_in_force_(
          prometheus::BuildGauge()
              .Name("cipherd_token_keys_last_reload_successful")
              .Help(
                  "1 where the keys of tokens in force, if any, are those that the files held when "
                  "they were read the last time")
              .Register(*registry_)
              .Add({})),
      last_reload_successful_(
          prometheus::BuildGauge()
              .Name("cipherd_programs_last_reload_successful")
              .Help("1 where all was well when programs were looked at the last time")
              .Register(*registry_)
              .Add({})),
      rpc_failures_(AddFailureCounters(*registry_)),
      collectables_({registry_, std::make_shared<ProcessCollector>()}) {
  token_keys_in_force_.Set(1);
  last_reload_successful_.Set(1);
  prometheus::BuildGauge()
      .Name("cipherd_build_info")
      .Help("1, labelled with the version of this build")
      .Register(*registry_)
      .Add({{"version", kVersion}})
      .Set(1);
}

Metrics::~Metrics() { StopServing(); }

void Metrics::ObserveRpc(std::string_view method, const absl::Status& status, double seconds) {
  prometheus::Histogram* histogram;
  {
    absl::MutexLock lock(&mu_);
    prometheus::Histogram*& known = rpc_histograms_[{std::string(method), status.code()}];
    if (known == nullptr) {
      known = &rpc_seconds_.Add(
          {{"method", std::string(method)}, {"code", absl::StatusCodeToString(status.code())}},
          SecondsBuckets());
    }
    histogram = known;
  }
  histogram->Observe(seconds);
  if (status.ok()) return;
  const std::optional<v1::ErrorDetail> detail = codec::GetErrorDetail(status);
  auto counter =
      rpc_failures_.find(detail.has_value() ? detail->reason() : v1::ERROR_REASON_UNSPECIFIED);
  if (counter == rpc_failures_.end()) counter = rpc_failures_.begin();
  counter->second->Increment();
}

void Metrics::ObserveEvaluation(const std::string& program, double seconds,
                                const engine::StageTimes& times) {
  const ProgramHistograms& histograms = HistogramsOf(program);
  histograms.duration->Observe(seconds);
  for (size_t i = 0; i < histograms.stages.size(); ++i) {
    histograms.stages[i]->Observe(times.*engine::kStages[i].seconds);
  }
}

void Metrics::AddProgram(const std::string& program) { HistogramsOf(program); }

const Metrics::ProgramHistograms& Metrics::HistogramsOf(const std::string& program) {
  absl::MutexLock lock(&mu_);
  const auto [it, is_new] = program_histograms_.try_emplace(program);
  if (is_new) {
    it->second.duration = &request_seconds_.Add({{"program", program}}, SecondsBuckets());
    for (size_t i = 0; i < it->second.stages.size(); ++i) {
      const std::string stage(engine::kStages[i].name);
      it->second.stages[i] =
          &stage_seconds_.Add({{"program", program}, {"stage", stage}}, SecondsBuckets());
    }
  }
  return it->second;
}

void Metrics::SetCertificateExpiry(std::string_view certificate, absl::Time expiry) {
  certificate_expiry_.Add({{"certificate", std::string(certificate)}})
      .Set(static_cast<double>(absl::ToUnixSeconds(expiry)));
}

void Metrics::SetTokenKeysInForce(bool in_force) { token_keys_in_force_.Set(in_force ? 1 : 0); }

void Metrics::SetReloaded(bool successful) { last_reload_successful_.Set(successful ? 1 : 0); }

void Metrics::CollectFrom(const engine::Engine& engine) {
  Collect(std::make_shared<EngineCollector>(engine));
}

void Metrics::CollectFrom(const TransportState& transport) {
  Collect(std::make_shared<TransportCollector>(transport));
}

void Metrics::Collect(std::shared_ptr<prometheus::Collectable> collectable) {
  collectables_.push_back(std::move(collectable));
  if (exposer_ != nullptr) exposer_->RegisterCollectable(collectables_.back());
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
  for (const auto& collectable : collectables_) exposer_->RegisterCollectable(collectable);
  return exposer_->GetListeningPorts().front();
}

void Metrics::StopServing() {
  exposer_.reset();
  collectables_.clear();
}

std::string Metrics::Text() const {
  std::vector<prometheus::MetricFamily> families;
  for (const auto& collectable : collectables_) {
    for (prometheus::MetricFamily& family : collectable->Collect()) {
      families.push_back(std::move(family));
    }
  }
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace cipherd::server
