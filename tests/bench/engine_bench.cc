// What the serving engine adds to the programs that it serves, in process.
//
//   engine_bench [--device cuda:0] [--programs deploy/programs] [--seconds 1] [--json out.json]
//
//   efficiency  requests a second with pinned input and output, over a bare loop of replays of the
//               same graph with the same keys on one stream
//   overlap     share of the time of copies to and from the device that lies under a replay
//   added       median latency of a lone request, less its copies and a bare replay: with the next
//               one right behind it, and with the engine idle for 2 ms before each
//   switch      extra time a request where tenants alternate, median of pairs of runs
//
// A program that the bus moves more slowly than the device computes cannot reach an efficiency of
// 1: `bus` is the part of a replay that the longer copy takes. Every run checks results against an
// eager run bit for bit, and fails where one differs.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "CLI/CLI.hpp"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status_macros.h"
#include "nlohmann/json.hpp"
#include "spdlog/spdlog.h"
#include "tests/bench/bench_programs.h"
#include "tests/bench/engine_workload.h"

namespace cipherd::bench {
namespace {

using engine::DeviceSpan;

struct BenchOptions {
  std::string device = "auto";
  std::string programs_directory = "deploy/programs";
  std::string only;
  std::string json_path;
  double seconds = 1;
  int instances = 3;
};

struct Figures {
  double bare_seconds = 0;
  double transfer_in_seconds = 0;
  double transfer_out_seconds = 0;
  double requests_per_second = 0;
  double efficiency = 0;
  double overlap = 0;
  // Microseconds.
  double added_p50 = 0;
  double added_p90 = 0;
  double added_idle_p50 = 0;
  double tenant_switch = 0;
  double tenant_switch_spread = 0;
  // Where the time of a lone request that is neither copies nor a bare replay goes, medians, µs.
  double before_taken = 0;
  double seen_to_told = 0;
  double before_replay = 0;
  double replay_excess = 0;
  double before_output = 0;
  double on_host = 0;
  uint64_t checked_count = 0;
};

double Quantile(std::vector<double> values, double q) {
  const size_t index = std::min(values.size() - 1, static_cast<size_t>(q * values.size()));
  std::nth_element(values.begin(), values.begin() + index, values.end());
  return values[index];
}

// Between the first completion of a full pipeline and the last.
double RequestsPerSecond(const std::vector<Sample>& samples, size_t skipped) {
  const absl::Duration time = samples.back().completed_at - samples[skipped].completed_at;
  return static_cast<double>(samples.size() - skipped - 1) / absl::ToDoubleSeconds(time);
}

// Disjoint and ascending.
std::vector<DeviceSpan> Union(std::vector<DeviceSpan> spans) {
  std::ranges::sort(spans, {}, &DeviceSpan::begin);
  std::vector<DeviceSpan> merged;
  for (const DeviceSpan& span : spans) {
    if (!merged.empty() && span.begin <= merged.back().end) {
      merged.back().end = std::max(merged.back().end, span.end);
    } else {
      merged.push_back(span);
    }
  }
  return merged;
}

double OverlapOf(const std::vector<Sample>& samples) {
  std::vector<DeviceSpan> replays, copies;
  for (const Sample& sample : samples) {
    replays.push_back(sample.timeline.replay);
    copies.push_back(sample.timeline.transfer_in);
    copies.push_back(sample.timeline.transfer_out);
  }
  replays = Union(std::move(replays));
  double covered = 0, total = 0;
  for (const DeviceSpan& copy : copies) {
    total += copy.end - copy.begin;
    auto replay = std::ranges::upper_bound(replays, copy.begin, {}, &DeviceSpan::end);
    for (; replay != replays.end() && replay->begin < copy.end; ++replay) {
      covered += std::min(copy.end, replay->end) - std::max(copy.begin, replay->begin);
    }
  }
  return total == 0 ? 0 : covered / total;
}

// Microseconds of each request that are neither copies nor replay.
std::vector<double> AddedMicroseconds(const std::vector<Sample>& samples, double bare_seconds) {
  std::vector<double> added;
  for (const Sample& sample : samples) {
    added.push_back(1e6 * (absl::ToDoubleSeconds(sample.latency) - bare_seconds -
                           sample.times.transfer_in_seconds - sample.times.transfer_out_seconds));
  }
  return added;
}

void BreakDown(const std::vector<Sample>& samples, Figures& figures) {
  const auto median = [&](auto seconds_of) {
    std::vector<double> values;
    for (const Sample& sample : samples) values.push_back(1e6 * seconds_of(sample));
    return Quantile(values, 0.5);
  };
  using Timeline = engine::DeviceTimeline;
  const auto of_timeline = [&](double (*seconds_of)(const Timeline&)) {
    return median([=](const Sample& sample) { return seconds_of(sample.timeline); });
  };
  figures.before_taken = median([](const Sample& s) {
    return absl::ToDoubleSeconds(s.timeline.taken_at - (s.completed_at - s.latency));
  });
  figures.seen_to_told = median(
      [](const Sample& s) { return absl::ToDoubleSeconds(s.completed_at - s.timeline.seen_at); });
  figures.before_replay =
      of_timeline([](const Timeline& t) { return t.replay.begin - t.transfer_in.end; });
  figures.replay_excess =
      of_timeline([](const Timeline& t) { return t.replay.end - t.replay.begin; }) -
      1e6 * figures.bare_seconds;
  figures.before_output =
      of_timeline([](const Timeline& t) { return t.transfer_out.begin - t.replay.end; });
  figures.on_host = median([](const Sample& s) {
    return absl::ToDoubleSeconds(s.latency) -
           (s.timeline.transfer_out.end - s.timeline.transfer_in.begin);
  });
}

absl::Status MeasureTenantSwitch(EngineWorkload& workload, const LoadOptions& load,
                                 Figures& figures) {
  std::vector<double> extra;
  for (int pair = 0; pair < 7; ++pair) {
    double rates[2];
    for (int turn = 0; turn < 2; ++turn) {
      // Which comes first changes, so that a drift of the machine cancels.
      const int tenants = 1 + (pair + turn) % 2;
      LoadOptions options = load;
      options.tenants = tenants;
      CIPHERD_ASSIGN_OR_RETURN(const std::vector<Sample> samples, workload.Run(options));
      rates[tenants - 1] = RequestsPerSecond(samples, load.concurrency);
    }
    extra.push_back(rates[0] / rates[1] - 1);
  }
  figures.tenant_switch = Quantile(extra, 0.5);
  figures.tenant_switch_spread = Quantile(extra, 1) - Quantile(extra, 0);
  return absl::OkStatus();
}

absl::StatusOr<Figures> Measure(EngineWorkload& workload, const engine::ServingSettings& settings,
                                const BenchOptions& options) {
  Figures figures;
  CIPHERD_ASSIGN_OR_RETURN(figures.bare_seconds, workload.BareReplaySeconds(options.seconds));
  LoadOptions load;
  load.concurrency = 2 * settings.instances * settings.largest_batch() + 2;
  const auto count_for = [&](double seconds) {
    const int per_run = static_cast<int>(seconds / figures.bare_seconds);
    return std::clamp(per_run, 8, 100'000) + load.concurrency;
  };
  // Warm, and every result of mixed tenants and inputs compared.
  load.request_count = 4 * load.concurrency;
  load.tenants = EngineWorkload::kTenantCount;
  load.checks_all = true;
  CIPHERD_RETURN_IF_ERROR(workload.Run(load).status());
  load.checks_all = false;
  load.tenants = 1;

  workload.engine().RecordTimelines(true);
  load.request_count = count_for(options.seconds);
  std::vector<double> rates;
  std::vector<double> overlaps;
  for (int run = 0; run < 3; ++run) {
    CIPHERD_ASSIGN_OR_RETURN(const std::vector<Sample> samples, workload.Run(load));
    rates.push_back(RequestsPerSecond(samples, load.concurrency));
    overlaps.push_back(OverlapOf(samples));
  }
  figures.requests_per_second = Quantile(rates, 0.5);
  figures.efficiency = figures.requests_per_second * figures.bare_seconds;
  figures.overlap = Quantile(overlaps, 0.5);
  workload.engine().RecordTimelines(false);

  load.request_count = count_for(options.seconds / 4);
  CIPHERD_RETURN_IF_ERROR(MeasureTenantSwitch(workload, load, figures));

  LoadOptions alone;
  alone.request_count =
      std::clamp(static_cast<int>(options.seconds / figures.bare_seconds), 5, 300);
  CIPHERD_ASSIGN_OR_RETURN(std::vector<Sample> samples, workload.Run(alone));
  std::vector<double> in, out;
  for (const Sample& sample : samples) {
    in.push_back(sample.times.transfer_in_seconds);
    out.push_back(sample.times.transfer_out_seconds);
  }
  figures.transfer_in_seconds = Quantile(in, 0.5);
  figures.transfer_out_seconds = Quantile(out, 0.5);
  figures.added_p50 = Quantile(AddedMicroseconds(samples, figures.bare_seconds), 0.5);
  figures.added_p90 = Quantile(AddedMicroseconds(samples, figures.bare_seconds), 0.9);
  alone.pause = absl::Milliseconds(2);
  CIPHERD_ASSIGN_OR_RETURN(samples, workload.Run(alone));
  figures.added_idle_p50 = Quantile(AddedMicroseconds(samples, figures.bare_seconds), 0.5);
  workload.engine().RecordTimelines(true);
  alone.pause = absl::ZeroDuration();
  CIPHERD_ASSIGN_OR_RETURN(samples, workload.Run(alone));
  BreakDown(samples, figures);
  figures.checked_count = workload.checked_count();
  return figures;
}

void PrintRow(const std::string& program, const std::string& batches, const Figures& f) {
  const double bus = std::max(f.transfer_in_seconds, f.transfer_out_seconds) / f.bare_seconds;
  std::printf(
      "%-14s %-10s %10.1f %8.1f %8.1f %6.2f %10.1f %10.3f %8.3f %8.1f %8.1f %8.1f %7.2f%% ±%.2f%% "
      "%8lu\n",
      program.c_str(), batches.c_str(), 1e6 * f.bare_seconds, 1e6 * f.transfer_in_seconds,
      1e6 * f.transfer_out_seconds, bus, f.requests_per_second, f.efficiency, f.overlap,
      f.added_p50, f.added_p90, f.added_idle_p50, 1e2 * f.tenant_switch,
      50 * f.tenant_switch_spread, static_cast<unsigned long>(f.checked_count));
  std::fflush(stdout);
}

nlohmann::json ToJson(const EngineWorkload& workload, const engine::ServingSettings& settings,
                      const Figures& f) {
  const programs::CheckedProgram& checked = workload.program().checked();
  const ckks::ContextParameters& parameters = checked.context->parameters();
  return {{"program", checked.spec.name},
          {"log_n", parameters.log_n},
          {"q_primes", parameters.q_count()},
          {"p_primes", parameters.p_count()},
          {"log_qp", parameters.log_qp()},
          {"digits", parameters.digits.size()},
          {"instances", settings.instances},
          {"batch_sizes", settings.batch_sizes},
          {"input_bytes", workload.program().info().input_bytes},
          {"output_bytes", workload.program().info().output_bytes},
          {"bare_replay_us", 1e6 * f.bare_seconds},
          {"transfer_in_us", 1e6 * f.transfer_in_seconds},
          {"transfer_out_us", 1e6 * f.transfer_out_seconds},
          {"requests_per_second", f.requests_per_second},
          {"efficiency", f.efficiency},
          {"overlap", f.overlap},
          {"added_p50_us", f.added_p50},
          {"added_p90_us", f.added_p90},
          {"added_after_idle_p50_us", f.added_idle_p50},
          {"added_breakdown_us",
           {{"until_taken", f.before_taken},
            {"seen_until_told", f.seen_to_told},
            {"transfer_in_to_replay", f.before_replay},
            {"replay_over_bare", f.replay_excess},
            {"replay_to_transfer_out", f.before_output},
            {"host", f.on_host}}},
          {"tenant_switch", f.tenant_switch},
          {"tenant_switch_spread", f.tenant_switch_spread},
          {"results_checked", f.checked_count}};
}

absl::Status RunAll(const BenchOptions& options) {
  std::vector<std::shared_ptr<const engine::InterpretedProgram>> programs;
  CIPHERD_ASSIGN_OR_RETURN(programs.emplace_back(), LoadFashionMlp(options.programs_directory));
  for (const int levels : {1, 8}) {
    CIPHERD_ASSIGN_OR_RETURN(programs.emplace_back(), MakeSquarings(levels));
  }
  std::printf("%-14s %-10s %10s %8s %8s %6s %10s %10s %8s %8s %8s %8s %8s %16s\n", "program",
              "batches", "replay µs", "in µs", "out µs", "bus", "req/s", "efficiency", "overlap",
              "added50", "added90", "idle50", "switch", "checked");
  nlohmann::json results = nlohmann::json::array();
  for (const auto& program : programs) {
    const std::string& name = program->info().name;
    if (!options.only.empty() && options.only != name) continue;
    for (const std::vector<int>& batches : {std::vector<int>{1}, std::vector<int>{1, 2, 4, 8}}) {
      // Graphs of many limbs fill the device one at a time, and eight of them its memory.
      if (batches.size() > 1 && name != "fashion_mlp") continue;
      engine::ServingSettings settings;
      settings.instances = options.instances;
      settings.batch_sizes = batches;
      settings.queue_capacity = settings.instances * settings.largest_batch() + 2;
      CIPHERD_ASSIGN_OR_RETURN(const std::unique_ptr<EngineWorkload> workload,
                               EngineWorkload::Create(program, options.device, settings));
      CIPHERD_ASSIGN_OR_RETURN(const Figures figures, Measure(*workload, settings, options));
      PrintRow(name, absl::StrJoin(batches, ","), figures);
      results.push_back(ToJson(*workload, settings, figures));
      results.back()["device"] = workload->engine().device().properties().name;
    }
  }
  if (options.json_path.empty()) return absl::OkStatus();
  std::ofstream file(options.json_path);
  file << results.dump(2) << '\n';
  return file ? absl::OkStatus() : absl::UnavailableError("cannot write " + options.json_path);
}

int Main(int argc, char** argv) {
  CLI::App app{"Measures the serving engine in process"};
  BenchOptions options;
  app.add_option("--device", options.device, "auto, cpu, or cuda:N");
  app.add_option("--programs", options.programs_directory, "Directory that holds fashion_mlp");
  app.add_option("--only", options.only, "fashion_mlp, squarings_1 or squarings_8");
  app.add_option("--seconds", options.seconds, "Of each run");
  app.add_option("--instances", options.instances, "Batches on the streams at once");
  app.add_option("--json", options.json_path, "Write the figures to this file");
  CLI11_PARSE(app, argc, argv);
  spdlog::set_level(spdlog::level::warn);
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  const absl::Status status = RunAll(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "engine_bench: %s\n", std::string(status.ToString()).c_str());
  return 1;
}

}  // namespace
}  // namespace cipherd::bench

int main(int argc, char** argv) { return cipherd::bench::Main(argc, argv); }
