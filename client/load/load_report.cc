#include "client/load/load_report.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "client/terminal/text_table.h"
#include "nlohmann/json.hpp"

namespace cipherd::client {
namespace {

std::string Milliseconds(double seconds) { return absl::StrFormat("%.2f", seconds * 1e3); }

std::string ReasonName(v1::ErrorReason reason) {
  if (reason == v1::ERROR_REASON_UNSPECIFIED) return "";
  const std::string name = v1::ErrorReason_Name(reason);
  return std::string(absl::StripPrefix(name, "ERROR_REASON_"));
}

std::string FormatLevel(double level) { return absl::StrFormat("%g", level); }

std::string LevelTitle(LoadMode mode) {
  return mode == LoadMode::kConcurrency ? "clients" : "requests/s due";
}

std::string LatencyTable(const LoadReport& report) {
  const auto right = [](std::string title) { return Column{std::move(title), Align::kRight}; };
  TextTable table({right(LevelTitle(report.options.mode)),
                   right("results/s"),
                   right("mean ms"),
                   right("p50"),
                   right("p90"),
                   right("p95"),
                   right("p99"),
                   right("max"),
                   right("failed"),
                   right("cancelled"),
                   right("late"),
                   right("backlog"),
                   {"stable"}});
  for (const LevelReport& level : report.levels) {
    const LoadStatistics& s = level.statistics;
    table.AddRow({FormatLevel(level.level), absl::StrFormat("%.1f", s.throughput),
                  Milliseconds(s.latency.mean), Milliseconds(s.latency.p50),
                  Milliseconds(s.latency.p90), Milliseconds(s.latency.p95),
                  Milliseconds(s.latency.p99), Milliseconds(s.latency.max),
                  absl::StrCat(s.failed()), absl::StrCat(s.cancelled), absl::StrCat(s.late),
                  absl::StrCat(level.backlog), level.is_stable ? "yes" : "NO"});
  }
  return table.ToString();
}

std::string StageTable(const LoadReport& report) {
  std::vector<Column> columns = {{LevelTitle(report.options.mode), Align::kRight}};
  for (const Stage& stage : kStages) {
    columns.push_back({absl::StrCat(stage.name, " ms"), Align::kRight});
  }
  columns.push_back({"outside ms", Align::kRight});
  TextTable table(columns);
  for (const LevelReport& level : report.levels) {
    std::vector<std::string> row = {FormatLevel(level.level)};
    double rest = level.statistics.latency.mean;
    for (const double seconds : level.statistics.stage_seconds) {
      row.push_back(Milliseconds(seconds));
      rest -= seconds;
    }
    row.push_back(Milliseconds(std::max(0.0, rest)));
    table.AddRow(std::move(row));
  }
  return table.ToString();
}

std::string FailureTable(const LoadReport& report) {
  TextTable table({{LevelTitle(report.options.mode), Align::kRight},
                   {"code"},
                   {"reason"},
                   {"requests", Align::kRight}});
  for (const LevelReport& level : report.levels) {
    for (const auto& [cause, count] : level.statistics.failures) {
      table.AddRow({FormatLevel(level.level), absl::StatusCodeToString(cause.first),
                    ReasonName(cause.second), absl::StrCat(count)});
    }
  }
  return table.ToString();
}

std::string ProgramTable(const LoadReport& report) {
  TextTable table({{LevelTitle(report.options.mode), Align::kRight},
                   {"program"},
                   {"results", Align::kRight},
                   {"p50 ms", Align::kRight},
                   {"p99 ms", Align::kRight}});
  for (const LevelReport& level : report.levels) {
    for (const auto& [program, latency] : level.statistics.latency_by_program) {
      table.AddRow({FormatLevel(level.level), report.programs[program], absl::StrCat(latency.count),
                    Milliseconds(latency.p50), Milliseconds(latency.p99)});
    }
  }
  return table.ToString();
}

nlohmann::json ToJson(const LatencySummary& latency) {
  return {{"count", latency.count}, {"mean", latency.mean}, {"p50", latency.p50},
          {"p90", latency.p90},     {"p95", latency.p95},   {"p99", latency.p99},
          {"max", latency.max}};
}

nlohmann::json ToJson(const LoadReport& report, const LevelReport& level) {
  const LoadStatistics& s = level.statistics;
  nlohmann::json stages = nlohmann::json::object();
  for (size_t i = 0; i < kStageCount; ++i) stages[kStages[i].name] = s.stage_seconds[i];
  nlohmann::json failures = nlohmann::json::array();
  for (const auto& [cause, count] : s.failures) {
    failures.push_back({{"code", absl::StatusCodeToString(cause.first)},
                        {"reason", ReasonName(cause.second)},
                        {"requests", count}});
  }
  nlohmann::json programs = nlohmann::json::object();
  for (const auto& [program, latency] : s.latency_by_program) {
    programs[report.programs[program]] = ToJson(latency);
  }
  return {{"level", level.level},
          {"stable", level.is_stable},
          {"trials", level.trial_count},
          {"measured_seconds", absl::ToDoubleSeconds(s.duration)},
          {"throughput", s.throughput},
          {"sent_rate", level.sent_rate},
          {"latency_seconds", ToJson(s.latency)},
          {"latency_seconds_by_program", programs},
          {"stage_mean_seconds", stages},
          {"requests",
           {{"succeeded", s.succeeded},
            {"failed", s.failed()},
            {"cancelled", s.cancelled},
            {"late", s.late},
            {"backlog", level.backlog},
            {"wrong", s.wrong},
            {"ended_in_all", level.ended_in_all},
            {"wrong_in_all", level.wrong_in_all}}},
          {"failures", failures},
          {"sent_bytes", s.sent_bytes},
          {"received_bytes", s.received_bytes}};
}

nlohmann::json ToJson(const LoadOptions& options) {
  nlohmann::json json = {
      {"mode", options.mode == LoadMode::kConcurrency ? "concurrency" : "request_rate"},
      {"measurement_interval_seconds", absl::ToDoubleSeconds(options.measurement_interval)},
      {"stability_percentage", options.stability_percentage},
      {"max_trials", options.max_trials},
      {"deadline_seconds", absl::ToDoubleSeconds(options.deadline)},
      {"cancel_share", options.cancel_share},
      {"seed", options.seed}};
  if (options.percentile.has_value()) json["percentile"] = *options.percentile;
  if (options.mode == LoadMode::kRequestRate) {
    json["request_distribution"] =
        options.distribution == ArrivalDistribution::kPoisson ? "poisson" : "constant";
    json["latency_from"] = "when the request was due";
    json["late_after_seconds"] = absl::ToDoubleSeconds(kLateAfter);
    json["max_in_flight"] = options.max_in_flight;
  } else {
    json["latency_from"] = "when the request was sent";
  }
  return json;
}

}  // namespace

std::string FormatLoadReport(const LoadReport& report) {
  const bool has_failures =
      std::any_of(report.levels.begin(), report.levels.end(),
                  [](const LevelReport& level) { return !level.statistics.failures.empty(); });
  std::string text = LatencyTable(report);
  if (report.options.mode == LoadMode::kRequestRate) {
    absl::StrAppend(&text,
                    "Latency counts from when a request was due, not from when it was sent; late: "
                    "sent more than ",
                    absl::ToInt64Milliseconds(kLateAfter), " ms after that.\n");
  }
  absl::StrAppend(&text, "\nWhere the time goes, in the mean (outside: the wire and this client)\n",
                  StageTable(report));
  if (report.programs.size() > 1) absl::StrAppend(&text, "\n", ProgramTable(report));
  if (has_failures) absl::StrAppend(&text, "\nFailures\n", FailureTable(report));
  uint64_t ended = 0;
  for (const LevelReport& level : report.levels) ended += level.ended_in_all;
  absl::StrAppend(&text, "\n", ended, " requests; ");
  if (report.was_verified) {
    absl::StrAppend(&text, "wrong results: ", report.wrong_count(), "\n");
  } else {
    absl::StrAppend(&text, "results were not verified (--verify)\n");
  }
  return text;
}

std::string LoadReportToJson(const LoadReport& report) {
  nlohmann::json levels = nlohmann::json::array();
  for (const LevelReport& level : report.levels) levels.push_back(ToJson(report, level));
  const nlohmann::json json = {
      {"schema", "cipherd.load.v1"},
      {"server", {{"version", report.server_version}, {"device", report.device}}},
      {"programs", report.programs},
      {"tenants", report.tenant_count},
      {"verified", report.was_verified},
      {"interrupted", report.was_interrupted},
      {"options", ToJson(report.options)},
      {"levels", levels}};
  return json.dump(2) + "\n";
}

std::string FormatLoadProgress(LoadMode mode, double level, int trial, const LoadStatistics* last) {
  std::string line =
      absl::StrFormat("%g %s  interval %d", level,
                      mode == LoadMode::kConcurrency ? "clients" : "requests/s due", trial);
  if (last != nullptr) {
    absl::StrAppend(&line, absl::StrFormat("  %.1f results/s  p50 %.2f ms  p99 %.2f ms  failed %d",
                                           last->throughput, last->latency.p50 * 1e3,
                                           last->latency.p99 * 1e3, last->failed()));
    if (last->wrong > 0) absl::StrAppend(&line, "  WRONG ", last->wrong);
  }
  return line;
}

}  // namespace cipherd::client
