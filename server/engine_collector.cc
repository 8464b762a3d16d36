#include "server/engine_collector.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "server/metric_families.h"

namespace cipherd::server {
namespace {

using engine::RequestState;
using prometheus::MetricFamily;

// Ends that a request can come to. Those of every program are shown from the start: Prometheus does
// not see the first increment of a series that begins with it.
constexpr std::pair<RequestState, absl::StatusCode> kUsualEnds[] = {
    {RequestState::kSucceeded, absl::StatusCode::kOk},
    {RequestState::kFailed, absl::StatusCode::kDeadlineExceeded},
    {RequestState::kFailed, absl::StatusCode::kInternal},
    {RequestState::kFailed, absl::StatusCode::kUnavailable},
    {RequestState::kCancelled, absl::StatusCode::kCancelled},
    {RequestState::kRejected, absl::StatusCode::kFailedPrecondition},
    {RequestState::kRejected, absl::StatusCode::kInvalidArgument},
    {RequestState::kRejected, absl::StatusCode::kNotFound},
    {RequestState::kRejected, absl::StatusCode::kResourceExhausted},
    {RequestState::kRejected, absl::StatusCode::kUnavailable},
};

void CollectRequests(const engine::Engine& engine, std::vector<MetricFamily>& families) {
  FamilyBuilder accepted =
      Counter("cipherd_requests_accepted_total", "Evaluations whose header arrived, by program");
  FamilyBuilder finished = Counter("cipherd_requests_finished_total",
                                   "Evaluations that ended, by program, outcome and status code");
  FamilyBuilder in_flight =
      Gauge("cipherd_requests_in_flight", "Evaluations between header and end, by program");
  std::map<std::string, engine::RequestLedger::Counts> ledger = engine.ledger().Snapshot();
  for (const auto& program : engine.programs()) ledger.try_emplace(program->info().name);
  for (auto& [program, counts] : ledger) {
    for (const auto& end : kUsualEnds) counts.finished.try_emplace(end, 0);
    accepted.Add({{"program", program}}, static_cast<double>(counts.accepted));
    in_flight.Add({{"program", program}}, static_cast<double>(counts.in_flight));
    for (const auto& [key, count] : counts.finished) {
      finished.Add({{"program", program},
                    {"outcome", engine::ToString(key.first)},
                    {"code", absl::StatusCodeToString(key.second)}},
                   static_cast<double>(count));
    }
  }
  families.push_back(accepted.Take());
  families.push_back(finished.Take());
  families.push_back(in_flight.Take());
  families.push_back(Counter("cipherd_quota_refusals_total",
                             "Evaluations refused because their tenant had as many as it may")
                         .Add({}, static_cast<double>(engine.quotas().refusal_count()))
                         .Take());
}

std::string IdOf(const engine::Engine& engine, size_t device) {
  return engine.device(device).id().ToString();
}

// Sums over the versions of one program: a row a name, whatever versions come and go.
struct ProgramSums {
  // The longest of its versions.
  absl::Duration default_timeout;
  // By version; of one that replaces another of the same number, whether either serves.
  std::map<int64_t, bool> ready;
  size_t queued = 0;
  int64_t capacity = 0;
  size_t trees = 0;
  size_t leased_trees = 0;
  std::map<int, uint64_t> replays;
  uint64_t eager_runs = 0;
  // By worker and device.
  std::map<std::pair<std::string, std::string>, engine::Worker::InstanceCounts> instances;
};

std::map<std::string, ProgramSums> SumPrograms(const engine::Engine& engine) {
  std::map<std::string, ProgramSums> programs;
  for (const auto& program : engine.programs()) {
    ProgramSums& sums = programs[program->info().name];
    // One on its way out has no row of its own: it will never be ready.
    if (!program->is_retired()) sums.ready[program->info().version] |= program->is_ready();
    sums.queued += engine.scheduler().queued_count(*program);
    sums.capacity += program->settings().queue_capacity;
    sums.default_timeout = std::max(sums.default_timeout, program->settings().default_timeout);
    sums.trees += program->trees().size();
    sums.leased_trees += program->trees().leased_count();
    for (const auto& [batch_size, count] : program->run_counts().replays()) {
      sums.replays[batch_size] += count;
    }
    sums.eager_runs += program->run_counts().eager_runs();
    for (const auto& worker : engine.workers()) {
      const engine::Worker::InstanceCounts counts = worker->instance_counts(*program);
      engine::Worker::InstanceCounts& of_worker =
          sums.instances[{worker->name(), IdOf(engine, worker->device_index())}];
      of_worker.total += counts.total;
      of_worker.leased += counts.leased;
    }
  }
  return programs;
}

void CollectPrograms(const engine::Engine& engine, std::vector<MetricFamily>& families) {
  FamilyBuilder ready = Gauge("cipherd_program_ready", "1 where the version of the program serves");
  FamilyBuilder queued = Gauge("cipherd_queue_requests", "Evaluations that wait for an instance");
  FamilyBuilder capacity =
      Gauge("cipherd_queue_capacity", "Evaluations that may wait while every instance is busy");
  FamilyBuilder timeouts =
      Gauge("cipherd_request_timeout_seconds",
            "Time that an evaluation has whose caller sets no deadline, by program");
  FamilyBuilder instances = Gauge("cipherd_instances", "Captured instances, by worker and state");
  FamilyBuilder replays =
      Counter("cipherd_replays_total", "Batches that ran as a graph, by program and batch size");
  FamilyBuilder eager = Counter("cipherd_eager_fallbacks_total",
                                "Batches that ran without their graph: 0, or graphs are not used");
  FamilyBuilder trees =
      Gauge("cipherd_pinned_trees", "Pinned trees of requests, by program and state");
  for (const auto& [name, sums] : SumPrograms(engine)) {
    for (const auto& [version, is_ready] : sums.ready) {
      ready.Add({{"program", name}, {"version", std::to_string(version)}}, is_ready ? 1 : 0);
    }
    queued.Add({{"program", name}}, static_cast<double>(sums.queued));
    capacity.Add({{"program", name}}, static_cast<double>(sums.capacity));
    timeouts.Add({{"program", name}}, absl::ToDoubleSeconds(sums.default_timeout));
    trees.Add({{"program", name}, {"state", "leased"}}, static_cast<double>(sums.leased_trees));
    trees.Add({{"program", name}, {"state", "idle"}},
              static_cast<double>(sums.trees - sums.leased_trees));
    for (const auto& [batch_size, count] : sums.replays) {
      replays.Add({{"program", name}, {"batch_size", std::to_string(batch_size)}},
                  static_cast<double>(count));
    }
    eager.Add({{"program", name}}, static_cast<double>(sums.eager_runs));
    for (const auto& [place, counts] : sums.instances) {
      const auto& [worker, device] = place;
      instances.Add(
          {{"program", name}, {"device", device}, {"worker", worker}, {"state", "leased"}},
          static_cast<double>(counts.leased));
      instances.Add({{"program", name}, {"device", device}, {"worker", worker}, {"state", "idle"}},
                    static_cast<double>(counts.total - counts.leased));
    }
  }
  FamilyBuilder age =
      Gauge("cipherd_queue_oldest_age_seconds", "Age of the evaluation that waits longest");
  age.Add({}, absl::ToDoubleSeconds(engine.scheduler().oldest_age()));
  for (FamilyBuilder* family :
       {&ready, &queued, &capacity, &timeouts, &instances, &replays, &eager, &trees, &age}) {
    families.push_back(family->Take());
  }
}

// What is by tier; the tier of devices has a row for each.
struct TierFamilies {
  FamilyBuilder bytes = Gauge(
      "cipherd_key_bytes", "Bytes of key sets by tier, uploads under way in the one of the host");
  FamilyBuilder budget = Gauge("cipherd_key_budget_bytes", "Bound of cipherd_key_bytes");
  FamilyBuilder hits =
      Counter("cipherd_key_set_hits_total", "Uses of key sets that were in the tier already");
  FamilyBuilder loads =
      Counter("cipherd_key_set_loads_total", "Key sets copied into the tier from the one below");
  FamilyBuilder evictions =
      Counter("cipherd_key_set_evictions_total", "Key sets that left the tier to make room");
  FamilyBuilder waits =
      Counter("cipherd_key_set_device_waits_total",
              "Times that a key set had to wait for room on the device, all of it in use");

  void AddDevice(const std::string& id, const engine::KeyResidency::Stats& stats) {
    const FamilyBuilder::Labels labels = {{"tier", "device"}, {"device", id}};
    bytes.Add(labels, static_cast<double>(stats.used_bytes));
    budget.Add(labels, static_cast<double>(stats.budget_bytes));
    hits.Add(labels, static_cast<double>(stats.hits));
    loads.Add(labels, static_cast<double>(stats.loads));
    evictions.Add(labels, static_cast<double>(stats.evictions));
    waits.Add({{"device", id}}, static_cast<double>(stats.refusals));
  }
  void AddStore(const engine::KeyStore::Stats& store) {
    bytes.Add({{"tier", "host"}}, static_cast<double>(store.host_bytes));
    bytes.Add({{"tier", "file"}}, static_cast<double>(store.file_bytes));
    budget.Add({{"tier", "host"}}, static_cast<double>(store.host_budget_bytes));
    budget.Add({{"tier", "file"}}, static_cast<double>(store.file_budget_bytes));
    hits.Add({{"tier", "host"}}, static_cast<double>(store.host_hits));
    loads.Add({{"tier", "host"}}, static_cast<double>(store.file_loads));
    evictions.Add({{"tier", "host"}}, static_cast<double>(store.host_evictions));
    evictions.Add({{"tier", "file"}}, static_cast<double>(store.file_evictions));
  }
};

void CollectKeys(const engine::Engine& engine, std::vector<MetricFamily>& families) {
  const engine::KeyStore::Stats store = engine.keys().stats();
  TierFamilies tiers;
  for (size_t i = 0; i < engine.device_count(); ++i) {
    tiers.AddDevice(IdOf(engine, i), engine.key_residency(i).stats());
  }
  tiers.AddStore(store);
  for (FamilyBuilder* family :
       {&tiers.bytes, &tiers.budget, &tiers.hits, &tiers.loads, &tiers.evictions, &tiers.waits}) {
    families.push_back(family->Take());
  }
  families.push_back(Gauge("cipherd_key_sets", "Key sets that are known, in whatever tier")
                         .Add({}, static_cast<double>(store.set_count))
                         .Take());
  families.push_back(Gauge("cipherd_key_sets_in_host_memory", "Key sets in host memory")
                         .Add({}, static_cast<double>(store.host_set_count))
                         .Take());
  families.push_back(Counter("cipherd_key_set_load_failures_total",
                             "Files of key sets that could not be read when they were needed")
                         .Add({}, static_cast<double>(store.file_load_failures))
                         .Take());
  families.push_back(
      Counter("cipherd_key_set_expirations_total", "Key sets dropped for their time to live")
          .Add({}, static_cast<double>(store.expirations))
          .Take());
}

void CollectPools(const engine::Engine& engine, std::vector<MetricFamily>& families) {
  FamilyBuilder allocated = Gauge("cipherd_memory_pool_allocated_bytes",
                                  "Bytes in use of the pools of device and pinned memory");
  FamilyBuilder reserved =
      Gauge("cipherd_memory_pool_reserved_bytes", "Bytes that the pools have from the system");
  FamilyBuilder budget =
      Gauge("cipherd_memory_pool_budget_bytes", "Bound of cipherd_memory_pool_reserved_bytes");
  FamilyBuilder slabs = Counter("cipherd_memory_pool_slab_allocations_total",
                                "Calls to the system's allocator, by pool");
  for (size_t i = 0; i < engine.device_count(); ++i) {
    const runtime::Device& device = engine.device(i);
    const std::string id = IdOf(engine, i);
    const std::pair<const char*, runtime::MemoryStats> pools[] = {
        {"device", device.device_memory_stats()}, {"pinned", device.pinned_memory_stats()}};
    for (const auto& [pool, stats] : pools) {
      const FamilyBuilder::Labels labels = {{"pool", pool}, {"device", id}};
      allocated.Add(labels, static_cast<double>(stats.allocated_bytes));
      reserved.Add(labels, static_cast<double>(stats.reserved_bytes));
      budget.Add(labels, static_cast<double>(stats.budget_bytes));
      slabs.Add(labels, static_cast<double>(stats.slab_allocation_count));
    }
  }
  for (FamilyBuilder* family : {&allocated, &reserved, &budget, &slabs}) {
    families.push_back(family->Take());
  }
}

void CollectDevices(const engine::Engine& engine, std::vector<MetricFamily>& families) {
  FamilyBuilder workers = Gauge("cipherd_worker_healthy", "1 where the worker takes requests");
  FamilyBuilder faults =
      Counter("cipherd_worker_faults_total", "Failures of the device that took the worker out");
  for (const auto& worker : engine.workers()) {
    const std::string device = IdOf(engine, worker->device_index());
    const FamilyBuilder::Labels labels = {{"worker", worker->name()}, {"device", device}};
    workers.Add(labels, worker->is_healthy() ? 1 : 0);
    faults.Add(labels, static_cast<double>(worker->fault_count()));
  }
  FamilyBuilder healthy =
      Gauge("cipherd_device_healthy",
            "0 where the device itself has failed, and only a restart of the daemon mends it");
  FamilyBuilder info = Gauge("cipherd_device_info", "1, labelled with the device");
  for (size_t i = 0; i < engine.device_count(); ++i) {
    const runtime::Device& device = engine.device(i);
    healthy.Add({{"device", device.id().ToString()}}, device.health().ok() ? 1 : 0);
    info.Add({{"device", device.id().ToString()}, {"name", device.properties().name}}, 1);
  }
  for (FamilyBuilder* family : {&workers, &faults, &healthy, &info}) {
    families.push_back(family->Take());
  }
}

}  // namespace

std::vector<MetricFamily> EngineCollector::Collect() const {
  std::vector<MetricFamily> families;
  CollectRequests(engine_, families);
  CollectPrograms(engine_, families);
  CollectKeys(engine_, families);
  CollectPools(engine_, families);
  CollectDevices(engine_, families);
  return families;
}

}  // namespace cipherd::server
