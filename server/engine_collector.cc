#include "server/engine_collector.h"

#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace cipherd::server {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;

// One family being filled.
class FamilyBuilder {
 public:
  using Labels = std::initializer_list<std::pair<const char*, std::string_view>>;

  FamilyBuilder(std::string name, std::string help, MetricType type) {
    family_.name = std::move(name);
    family_.help = std::move(help);
    family_.type = type;
  }

  FamilyBuilder& Add(Labels labels, double value) {
    ClientMetric& metric = family_.metric.emplace_back();
    for (const auto& [name, text] : labels) metric.label.push_back({name, std::string(text)});
    if (family_.type == MetricType::Counter) {
      metric.counter.value = value;
    } else {
      metric.gauge.value = value;
    }
    return *this;
  }

  MetricFamily Take() { return std::move(family_); }

 private:
  MetricFamily family_;
};

FamilyBuilder Counter(std::string name, std::string help) {
  return FamilyBuilder(std::move(name), std::move(help), MetricType::Counter);
}
FamilyBuilder Gauge(std::string name, std::string help) {
  return FamilyBuilder(std::move(name), std::move(help), MetricType::Gauge);
}

void CollectRequests(const engine::Engine& engine, std::vector<MetricFamily>& families) {
  FamilyBuilder accepted =
      Counter("cipherd_requests_accepted_total", "Evaluations whose header arrived, by program");
  FamilyBuilder finished = Counter("cipherd_requests_finished_total",
                                   "Evaluations that ended, by program, outcome and status code");
  FamilyBuilder in_flight =
      Gauge("cipherd_requests_in_flight", "Evaluations between header and end, by program");
  for (const auto& [program, counts] : engine.ledger().Snapshot()) {
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
}

// Sums over the versions of one program: a row a name, whatever versions come and go.
struct ProgramSums {
  // By version; of one that replaces another of the same number, whether either serves.
  std::map<int64_t, bool> ready;
  size_t queued = 0;
  int64_t capacity = 0;
  size_t trees = 0;
  size_t leased_trees = 0;
  std::map<int, uint64_t> replays;
  uint64_t eager_runs = 0;
  // By worker.
  std::map<std::string, engine::Worker::InstanceCounts> instances;
};

std::map<std::string, ProgramSums> SumPrograms(const engine::Engine& engine) {
  std::map<std::string, ProgramSums> programs;
  for (const auto& program : engine.programs()) {
    ProgramSums& sums = programs[program->info().name];
    // One on its way out has no row of its own: it will never be ready.
    if (!program->is_retired()) sums.ready[program->info().version] |= program->is_ready();
    sums.queued += engine.scheduler().queued_count(*program);
    // The scheduler's bound: requests that an idle worker has not picked up yet count, too.
    sums.capacity += program->settings().place_count(engine.options().workers);
    sums.trees += program->trees().size();
    sums.leased_trees += program->trees().leased_count();
    for (const auto& [batch_size, count] : program->run_counts().replays()) {
      sums.replays[batch_size] += count;
    }
    sums.eager_runs += program->run_counts().eager_runs();
    for (const auto& worker : engine.workers()) {
      const engine::Worker::InstanceCounts counts = worker->instance_counts(*program);
      engine::Worker::InstanceCounts& of_worker = sums.instances[worker->name()];
      of_worker.total += counts.total;
      of_worker.leased += counts.leased;
    }
  }
  return programs;
}

void CollectPrograms(const engine::Engine& engine, std::vector<MetricFamily>& families) {
  FamilyBuilder ready = Gauge("cipherd_program_ready", "1 where the version of the program serves");
  FamilyBuilder queued = Gauge("cipherd_queue_requests", "Evaluations that wait for an instance");
  FamilyBuilder capacity = Gauge("cipherd_queue_capacity", "Bound of cipherd_queue_requests");
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
    trees.Add({{"program", name}, {"state", "leased"}}, static_cast<double>(sums.leased_trees));
    trees.Add({{"program", name}, {"state", "idle"}},
              static_cast<double>(sums.trees - sums.leased_trees));
    for (const auto& [batch_size, count] : sums.replays) {
      replays.Add({{"program", name}, {"batch_size", std::to_string(batch_size)}},
                  static_cast<double>(count));
    }
    eager.Add({{"program", name}}, static_cast<double>(sums.eager_runs));
    for (const auto& [worker, counts] : sums.instances) {
      instances.Add({{"program", name}, {"worker", worker}, {"state", "leased"}},
                    static_cast<double>(counts.leased));
      instances.Add({{"program", name}, {"worker", worker}, {"state", "idle"}},
                    static_cast<double>(counts.total - counts.leased));
    }
  }
  FamilyBuilder age =
      Gauge("cipherd_queue_oldest_age_seconds", "Age of the evaluation that waits longest");
  age.Add({}, absl::ToDoubleSeconds(engine.scheduler().oldest_age()));
  for (FamilyBuilder* family :
       {&ready, &queued, &capacity, &instances, &replays, &eager, &trees, &age}) {
    families.push_back(family->Take());
  }
}

void CollectKeys(const engine::Engine& engine, std::vector<MetricFamily>& families) {
  const engine::KeyStore::Stats store = engine.keys().stats();
  const engine::KeyResidency::Stats device = engine.key_residency().stats();
  families.push_back(Gauge("cipherd_key_bytes",
                           "Bytes of key sets by tier, uploads under way in the one of the host")
                         .Add({{"tier", "device"}}, static_cast<double>(device.used_bytes))
                         .Add({{"tier", "host"}}, static_cast<double>(store.host_bytes))
                         .Add({{"tier", "file"}}, static_cast<double>(store.file_bytes))
                         .Take());
  families.push_back(Gauge("cipherd_key_budget_bytes", "Bound of cipherd_key_bytes")
                         .Add({{"tier", "device"}}, static_cast<double>(device.budget_bytes))
                         .Add({{"tier", "host"}}, static_cast<double>(store.host_budget_bytes))
                         .Add({{"tier", "file"}}, static_cast<double>(store.file_budget_bytes))
                         .Take());
  families.push_back(Gauge("cipherd_key_sets", "Key sets that are known, in whatever tier")
                         .Add({}, static_cast<double>(store.set_count))
                         .Take());
  families.push_back(Gauge("cipherd_key_sets_in_host_memory", "Key sets in host memory")
                         .Add({}, static_cast<double>(store.host_set_count))
                         .Take());
  families.push_back(
      Counter("cipherd_key_store_total",
              "Uses of key sets: in host memory already, read from file, not readable now; and "
              "sets that left host memory, or had to go for want of room on file or for their age")
          .Add({{"event", "hit"}}, static_cast<double>(store.host_hits))
          .Add({{"event", "load"}}, static_cast<double>(store.file_loads))
          .Add({{"event", "load_failure"}}, static_cast<double>(store.file_load_failures))
          .Add({{"event", "eviction"}}, static_cast<double>(store.host_evictions))
          .Add({{"event", "file_eviction"}}, static_cast<double>(store.file_evictions))
          .Add({{"event", "expiration"}}, static_cast<double>(store.expirations))
          .Take());
  families.push_back(Counter("cipherd_key_residency_total",
                             "Uses of key sets on the device: resident already, copied, evicted, "
                             "put off for want of room")
                         .Add({{"event", "hit"}}, static_cast<double>(device.hits))
                         .Add({{"event", "load"}}, static_cast<double>(device.loads))
                         .Add({{"event", "eviction"}}, static_cast<double>(device.evictions))
                         .Add({{"event", "refusal"}}, static_cast<double>(device.refusals))
                         .Take());
}

void CollectDevice(const engine::Engine& engine, std::vector<MetricFamily>& families) {
  const runtime::Device& device = engine.device();
  FamilyBuilder bytes = Gauge("cipherd_pool_bytes", "Bytes of the memory pools, by pool and kind");
  FamilyBuilder slabs =
      Counter("cipherd_pool_slab_allocations_total", "Calls to the system's allocator, by pool");
  const std::pair<const char*, runtime::MemoryStats> pools[] = {
      {"device", device.device_memory_stats()}, {"pinned", device.pinned_memory_stats()}};
  for (const auto& [pool, stats] : pools) {
    bytes.Add({{"pool", pool}, {"kind", "allocated"}}, static_cast<double>(stats.allocated_bytes));
    bytes.Add({{"pool", pool}, {"kind", "reserved"}}, static_cast<double>(stats.reserved_bytes));
    bytes.Add({{"pool", pool}, {"kind", "budget"}}, static_cast<double>(stats.budget_bytes));
    slabs.Add({{"pool", pool}}, static_cast<double>(stats.slab_allocation_count));
  }
  FamilyBuilder workers = Gauge("cipherd_worker_healthy", "1 where the worker takes requests");
  for (const auto& worker : engine.workers()) {
    workers.Add({{"worker", worker->name()}}, worker->is_healthy() ? 1 : 0);
  }
  families.push_back(bytes.Take());
  families.push_back(slabs.Take());
  families.push_back(workers.Take());
  families.push_back(
      Gauge("cipherd_device_info", "1, labelled with the device")
          .Add({{"device", device.id().ToString()}, {"name", device.properties().name}}, 1)
          .Take());
}

}  // namespace

std::vector<MetricFamily> EngineCollector::Collect() const {
  std::vector<MetricFamily> families;
  CollectRequests(engine_, families);
  CollectPrograms(engine_, families);
  CollectKeys(engine_, families);
  CollectDevice(engine_, families);
  return families;
}

}  // namespace cipherd::server
