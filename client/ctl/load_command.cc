// load: a measured load on a daemon.
#include <atomic>
#include <csignal>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/ctl/commands.h"
#include "client/ctl/connection_flags.h"
#include "client/files/vector_file.h"
#include "client/load/load_chart.h"
#include "client/load/load_options.h"
#include "client/load/load_report.h"
#include "client/load/load_run.h"
#include "client/load/workload.h"
#include "client/terminal/progress_bar.h"
#include "client/terminal/status_line.h"
#include "core/base/atomic_file.h"
#include "core/base/status_macros.h"

namespace cipherd::client {
namespace {

struct Flags {
  ConnectionFlags connection;
  std::vector<std::string> programs;
  std::vector<std::string> versions;
  std::vector<std::string> inputs;
  std::vector<std::string> expected;
  double tolerance = 1e-3;
  int tenants = 1;
  std::vector<std::string> identities;
  std::vector<std::string> token_files;
  int variants = 2;
  bool verify = false;

  std::string concurrency_range;
  std::string request_rate_range;
  std::string distribution = "constant";
  double measurement_interval_ms = 5000;
  double stability_percentage = 10;
  int max_trials = 10;
  int percentile = 0;
  double latency_threshold_ms = 0;
  double deadline_seconds = 60;
  double cancel_share = 0;
  double retry_delay_ms = 20;
  int max_in_flight = 1024;
  uint64_t seed = 1;

  std::string json;
  std::string chart;
};

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

// The first Ctrl-C ends the measurement and prints what there is; the second ends the program.
void OnInterrupt(int) {
  interrupted.store(true);
  std::signal(SIGINT, SIG_DFL);
}

absl::StatusOr<LoadOptions> ToLoadOptions(const Flags& flags) {
  LoadOptions options;
  options.mode = flags.request_rate_range.empty() ? LoadMode::kConcurrency : LoadMode::kRequestRate;
  const std::string& range =
      options.mode == LoadMode::kRequestRate ? flags.request_rate_range : flags.concurrency_range;
  if (!range.empty()) {
    CIPHERD_ASSIGN_OR_RETURN(options.levels, LevelRange::Parse(range));
  }
  if (flags.distribution == "poisson") options.distribution = ArrivalDistribution::kPoisson;
  options.measurement_interval = absl::Milliseconds(flags.measurement_interval_ms);
  options.stability_percentage = flags.stability_percentage;
  options.max_trials = flags.max_trials;
  if (flags.percentile != 0) options.percentile = flags.percentile;
  if (flags.latency_threshold_ms != 0) {
    options.latency_threshold = absl::Milliseconds(flags.latency_threshold_ms);
  }
  options.deadline = absl::Seconds(flags.deadline_seconds);
  options.cancel_share = flags.cancel_share;
  options.retry_delay = absl::Milliseconds(flags.retry_delay_ms);
  options.max_in_flight = flags.max_in_flight;
  options.seed = flags.seed;
  CIPHERD_RETURN_IF_ERROR(options.Validate());
  return options;
}

// "name" or "name:weight".
absl::StatusOr<ProgramShare> ParseProgram(const std::string& text, double tolerance) {
  ProgramShare share;
  share.tolerance = tolerance;
  const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
  share.name = parts[0];
  if (parts.size() == 2 && !absl::SimpleAtod(parts[1], &share.weight)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--program: expected NAME or NAME:WEIGHT, got '", text, "'"));
  }
  return share;
}

// Reads "program:version" into that program.
absl::Status SetVersion(const std::string& text, std::vector<ProgramShare>& shares) {
  const std::vector<std::string> parts = absl::StrSplit(text, absl::MaxSplits(':', 1));
  uint32_t version = 0;
  if (parts.size() != 2 || !absl::SimpleAtoi(parts[1], &version)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--program-version: expected PROGRAM:VERSION, got '", text, "'"));
  }
  for (ProgramShare& share : shares) {
    if (share.name != parts[0]) continue;
    share.version = version;
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--program-version: no --program '", parts[0], "'"));
}

// Reads "program:name=file" into the vectors of that program.
absl::Status AddVectors(const std::string& flag, const std::string& text,
                        NamedVectors ProgramShare::*vectors, std::vector<ProgramShare>& shares) {
  const size_t colon = text.find(':');
  const size_t equals = text.find('=', colon);
  if (colon == std::string::npos || equals == std::string::npos) {
    return absl::InvalidArgumentError(
        absl::StrCat("--", flag, ": expected PROGRAM:NAME=FILE, got '", text, "'"));
  }
  for (ProgramShare& share : shares) {
    if (share.name != text.substr(0, colon)) continue;
    CIPHERD_ASSIGN_OR_RETURN((share.*vectors)[text.substr(colon + 1, equals - colon - 1)],
                             ReadVectors(text.substr(equals + 1)));
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, ": no --program '", text.substr(0, colon), "'"));
}

// One connection a tenant: with the identities in turn, where there are some.
absl::StatusOr<std::vector<ClientOptions>> TenantsOf(const Flags& flags) {
  const ClientOptions base = flags.connection.ToOptions();
  std::vector<ClientOptions> tenants(flags.tenants, base);
  for (size_t i = 0; i < tenants.size() && !flags.identities.empty(); ++i) {
    const std::string& text = flags.identities[i % flags.identities.size()];
    const std::vector<std::string> files = absl::StrSplit(text, ',');
    if (files.size() != 2 || !base.tls.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--tenant-cert: expected CERT,KEY and --tls, got '", text, "'"));
    }
    tenants[i].tls->certificate_file = files[0];
    tenants[i].tls->private_key_file = files[1];
  }
  for (size_t i = 0; i < tenants.size() && !flags.token_files.empty(); ++i) {
    tenants[i].bearer_token_file = flags.token_files[i % flags.token_files.size()];
  }
  return tenants;
}

absl::StatusOr<std::unique_ptr<Workload>> PrepareWorkload(const Flags& flags) {
  WorkloadOptions options;
  CIPHERD_ASSIGN_OR_RETURN(options.tenants, TenantsOf(flags));
  for (const std::string& text : flags.programs) {
    CIPHERD_ASSIGN_OR_RETURN(ProgramShare share, ParseProgram(text, flags.tolerance));
    options.programs.push_back(std::move(share));
  }
  for (const std::string& text : flags.versions) {
    CIPHERD_RETURN_IF_ERROR(SetVersion(text, options.programs));
  }
  for (const std::string& text : flags.inputs) {
    CIPHERD_RETURN_IF_ERROR(AddVectors("input", text, &ProgramShare::inputs, options.programs));
  }
  for (const std::string& text : flags.expected) {
    CIPHERD_RETURN_IF_ERROR(
        AddVectors("expected", text, &ProgramShare::expected, options.programs));
  }
  options.variants = flags.variants;
  options.verify = flags.verify || !flags.expected.empty();
  options.seed = flags.seed;
  ProgressBar progress("making and sending keys",
                       static_cast<int64_t>(options.tenants.size() * options.programs.size()),
                       ProgressUnit::kItems);
  options.progress = [&](int done_count, int) { progress.Update(done_count); };
  CIPHERD_ASSIGN_OR_RETURN(std::unique_ptr<Workload> workload, Workload::Prepare(options));
  progress.Finish();
  return workload;
}

absl::Status WriteText(const std::string& path, const std::string& text) {
  CIPHERD_ASSIGN_OR_RETURN(base::AtomicFile file, base::AtomicFile::Create(path, 0644));
  CIPHERD_RETURN_IF_ERROR(
      file.Write(std::span(reinterpret_cast<const uint8_t*>(text.data()), text.size())));
  return std::move(file).Commit(base::AtomicFile::Existing::kReplace);
}

absl::Status Load(const Flags& flags) {
  CIPHERD_ASSIGN_OR_RETURN(const LoadOptions options, ToLoadOptions(flags));
  if (!flags.chart.empty()) CIPHERD_RETURN_IF_ERROR(CheckCanDraw(flags.chart));
  CIPHERD_ASSIGN_OR_RETURN(const std::unique_ptr<Workload> workload, PrepareWorkload(flags));

  std::signal(SIGINT, OnInterrupt);
  StatusLine line;
  CIPHERD_ASSIGN_OR_RETURN(
      const LoadReport report,
      RunLoad(*workload, options,
              {.on_progress =
                   [&](double level, int trial, const LoadStatistics* last) {
                     line.Update(FormatLoadProgress(options.mode, level, trial, last));
                   },
               .is_interrupted = [] { return interrupted.load(); }}));
  line.Clear();
  const absl::Status released = workload->Release();

  std::cout << FormatLoadReport(report);
  if (!flags.json.empty()) {
    CIPHERD_RETURN_IF_ERROR(WriteText(flags.json, LoadReportToJson(report)));
  }
  if (!flags.chart.empty()) CIPHERD_RETURN_IF_ERROR(DrawLoadChart(report, flags.chart));
  if (report.wrong_count() > 0) {
    return absl::DataLossError(absl::StrCat(report.wrong_count(), " results were wrong"));
  }
  return released;
}

void AddWorkloadFlags(CLI::App& command, Flags& flags) {
  command.add_option("--program", flags.programs, "NAME or NAME:WEIGHT; several make a mix")
      ->required();
  command.add_option("--program-version", flags.versions,
                     "PROGRAM:VERSION (default: the newest that is ready)");
  command.add_option("--tenants", flags.tenants, "Connections with key sets of their own")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  command.add_option("--tenant-cert", flags.identities,
                     "CERT,KEY: PEM files of a tenant's identity; several are taken in turn");
  command.add_option("--tenant-token", flags.token_files,
                     "File with a tenant's bearer token; several are taken in turn");
  command.add_option("--input", flags.inputs,
                     "PROGRAM:NAME=FILE, as of encrypt (default: random vectors)");
  command
      .add_option("--variants", flags.variants, "Different ciphertexts of each program and tenant")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command.add_flag("--verify", flags.verify,
                   "Compare every result with the first one for the same input, bit for bit");
  command.add_option("--expected", flags.expected,
                     "PROGRAM:NAME=FILE: what the decrypted output must be; implies --verify");
  command.add_option("--tolerance", flags.tolerance, "Of --expected")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_option("--deadline", flags.deadline_seconds, "Of each request, in seconds")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command
      .add_option("--cancel-share", flags.cancel_share,
                  "Share of the requests that are cancelled under way, 0 to 1")
      ->capture_default_str();
  command.add_option("--seed", flags.seed, "Of the mix, the arrivals and the cancellations")
      ->capture_default_str();
}

void AddMeasurementFlags(CLI::App& command, Flags& flags) {
  CLI::Option* concurrency =
      command.add_option("--concurrency-range", flags.concurrency_range,
                         "start[:end[:step]] clients, each with one request at a time (default 1)");
  CLI::Option* rate =
      command.add_option("--request-rate-range", flags.request_rate_range,
                         "start[:end[:step]] requests a second, whenever answers come; latency "
                         "counts from the time at which a request was due");
  rate->excludes(concurrency);
  command.add_option("--request-distribution", flags.distribution, "constant or poisson")
      ->check(CLI::IsMember({"constant", "poisson"}))
      ->capture_default_str();
  command
      .add_option("--max-in-flight", flags.max_in_flight,
                  "Requests under way at once with --request-rate-range")
      ->capture_default_str();
  command
      .add_option(
          "--retry-delay", flags.retry_delay_ms,
          "Milliseconds that a client of --concurrency-range waits after a failure; doubles "
          "with each further one, up to a second")
      ->capture_default_str();
  command.add_option("--measurement-interval", flags.measurement_interval_ms, "In milliseconds")
      ->capture_default_str();
  command
      .add_option("--stability-percentage", flags.stability_percentage,
                  "Three intervals in a row must agree within this")
      ->capture_default_str();
  command.add_option("--max-trials", flags.max_trials, "Intervals before a level is given up")
      ->capture_default_str();
  command.add_option("--percentile", flags.percentile,
                     "Latency that must be stable, 1 to 99 (default: the mean)");
  command.add_option("--latency-threshold", flags.latency_threshold_ms,
                     "Milliseconds; levels after one above are left out");
  command.add_option("--json", flags.json, "Write the report to this file, too");
  command.add_option("--chart", flags.chart,
                     "Draw latency against load, .svg or .png (needs gnuplot)");
}

}  // namespace

void AddLoadCommand(CLI::App& app, absl::Status& status) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "load", "Put a load on the daemon, and measure latency, throughput and failures");
  flags->connection.AddTo(*command);
  AddWorkloadFlags(*command, *flags);
  AddMeasurementFlags(*command, *flags);
  command->callback([flags, &status] { status = Load(*flags); });
}

}  // namespace cipherd::client
