#include "tests/integration/daemon_fixture.h"

#include <signal.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "core/base/status_macros.h"
#include "core/ckks/context_parameters.h"
#include "grpcpp/create_channel.h"
#include "health.grpc.pb.h"
#include "proto/codec/program_codec.h"
#include "tests/testing/served_device.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::testing {
programs::ProgramSpec SquareAndTurn(const std::string& name, int log_n) {
  using programs::OperationKind;
  programs::ProgramSpec spec;
  spec.name = name;
  spec.description = "squares every slot and turns by one";
  spec.context = *ckks::MakeContextParameters({.log_n = log_n,
                                               .base_prime_bits = 50,
                                               .depth_prime_bits = 40,
                                               .max_depth = 1,
                                               .p_prime_bits = 50,
                                               .p_prime_count = 2},
                                              ckks::SecurityPolicy::kAllowInsecure);
  const programs::SlotLayout layout = {.item_count = 2,
                                       .item_stride = 1,
                                       .element_count = int64_t{1} << (log_n - 2),
                                       .element_stride = 2};
  spec.inputs = {{.name = "x", .layout = layout}};
  spec.operations = {{.name = "square", .kind = OperationKind::kSquare, .a = "x"},
                     {.name = "linear", .kind = OperationKind::kRelinearize, .a = "square"},
                     {.name = "scaled", .kind = OperationKind::kRescale, .a = "linear"},
                     {.name = "turned", .kind = OperationKind::kRotate, .a = "scaled", .step = 1}};
  spec.outputs = {{.name = "y", .edge = "turned", .layout = layout}};
  return spec;
}

client::Vectors SquaredAndTurned(const client::Vectors& x) {
  client::Vectors y(2);
  const size_t count = x[0].size();
  for (size_t j = 0; j < count; ++j) {
    // Slot 2j + k holds element j of vector k, so that the slot after it is that of the other
    // vector.
    const double next_of_0 = x[0][(j + 1) % count];
    y[0].push_back(x[1][j] * x[1][j]);
    y[1].push_back(next_of_0 * next_of_0);
  }
  return y;
}

void DaemonTest::SetUp() {
  std::string pattern = ::testing::TempDir() + "cipherd_integration_XXXXXX";
  ASSERT_NE(mkdtemp(pattern.data()), nullptr);
  directory_ = pattern;
}

void DaemonTest::TearDown() {
  if (HasFailure()) std::cerr << Log();
  daemon_.reset();
  std::filesystem::remove_all(directory_);
}

std::string DaemonTest::SmallPrograms() {
  return WritePrograms({SquareAndTurn(kSmallProgram, 10)});
}

std::string DaemonTest::WritePrograms(const std::vector<programs::ProgramSpec>& specs) const {
  const std::string programs = Path("programs");
  for (const programs::ProgramSpec& spec : specs) {
    WriteProgram(spec, absl::StrCat(programs, "/", spec.name));
  }
  return programs;
}

void DaemonTest::WriteProgram(const programs::ProgramSpec& spec, const std::string& directory) {
  std::filesystem::create_directories(directory);
  const absl::StatusOr<std::string> text = codec::PrintProgramText(spec);
  ASSERT_OK(text);
  std::ofstream(absl::StrCat(directory, "/program.textproto")) << *text;
}

std::string DaemonTest::DeployedPrograms() { return CIPHERD_SOURCE_DIR "/deploy/programs"; }

absl::Status DaemonTest::StartDaemon(const std::string& programs, const std::string& program,
                                     const std::vector<std::string>& flags) {
  std::vector<std::string> arguments = {CIPHERD_BINARY, "--device",    ServedDevice(),
                                        "--listen",     "127.0.0.1:0", "--metrics-listen",
                                        "127.0.0.1:0",  "--port-file", Path("port"),
                                        "--programs",   programs,      "--allow-insecure-contexts"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  CIPHERD_ASSIGN_OR_RETURN(daemon_, Process::Start(arguments, Path("cipherd.log")));
  // The daemon says so when it listens; the port file is there by then.
  CIPHERD_RETURN_IF_ERROR(daemon_->ReadLine().status());
  if (!(std::ifstream(Path("port")) >> port_)) {
    return absl::InternalError("no port in the port file");
  }
  address_ = absl::StrCat("127.0.0.1:", port_);
  CIPHERD_ASSIGN_OR_RETURN(const std::string metrics_line, daemon_->ReadLine());
  constexpr std::string_view kMetrics = "metrics on port ";
  if (!metrics_line.starts_with(kMetrics) ||
      !absl::SimpleAtoi(metrics_line.substr(kMetrics.size()), &metrics_port_)) {
    return absl::InternalError(absl::StrCat("expected the metrics port, got: ", metrics_line));
  }
  return AwaitServing(program);
}

absl::Status DaemonTest::AwaitServing(const std::string& program) const {
  const auto stub = grpc::health::v1::Health::NewStub(
      grpc::CreateChannel(address_, grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Minutes(2)));
  context.set_wait_for_ready(true);
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(program);
  const auto stream = stub->Watch(&context, request);
  grpc::health::v1::HealthCheckResponse response;
  while (stream->Read(&response)) {
    if (response.status() != grpc::health::v1::HealthCheckResponse::SERVING) continue;
    context.TryCancel();
    stream->Finish();
    return absl::OkStatus();
  }
  const grpc::Status status = stream->Finish();
  return absl::UnavailableError(
      absl::StrCat("program '", program, "' is not served: ", status.error_message()));
}

int DaemonTest::StopDaemon() {
  daemon_->Signal(SIGTERM);
  const int exit_status = daemon_->Wait();
  daemon_.reset();
  return exit_status;
}

client::ClientOptions DaemonTest::Options() const {
  client::ClientOptions options;
  options.target = address_;
  options.security_policy = ckks::SecurityPolicy::kAllowInsecure;
  return options;
}

absl::StatusOr<MetricsPage> DaemonTest::Metrics() const {
  return MetricsPage::Fetch(metrics_port_);
}

std::string DaemonTest::Log() const {
  std::ifstream log(Path("cipherd.log"));
  return {std::istreambuf_iterator<char>(log), {}};
}

}  // namespace cipherd::testing
