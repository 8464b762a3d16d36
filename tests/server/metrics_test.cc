// The metrics page: what is on it, and that it adds up.
#include "server/metrics.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/service_fixture.h"
#include "tests/server/test_certificates.h"
#include "tests/testing/metrics_page.h"
#include "tests/testing/served_device.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server {
namespace {

using ::cipherd::testing::HttpGet;
using ::cipherd::testing::MetricsPage;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace server::testing;  // NOLINT: the test's own vocabulary

class MetricsTest : public ServiceTest {
 protected:
  MetricsPage Page() const {
    absl::StatusOr<MetricsPage> page = MetricsPage::Parse(server_->metrics().Text());
    EXPECT_OK(page);
    return page.ok() ? *page : MetricsPage();
  }
};

// accepted = succeeded + failed + cancelled + rejected + in flight.
void ExpectBalance(const MetricsPage& page) {
  double sum = page.Sum("cipherd_requests_in_flight");
  for (const char* outcome : {"succeeded", "failed", "cancelled", "rejected"}) {
    sum += page.Sum("cipherd_requests_finished_total", {{"outcome", outcome}});
  }
  EXPECT_EQ(page.Sum("cipherd_requests_accepted_total"), sum) << page.text();
}

TEST_F(MetricsTest, AcceptedIsTheSumOfAllOutcomes) {
  for (int i = 0; i < 3; ++i) ExpectGoodRequestSucceeds(i);
  WireRequest bad = MakeWireRequest("nothing", alice_keys(), alice().Encrypt(TestSlots(1, 128)));
  v1::EvaluateResponse response;
  EXPECT_FALSE(EvaluateUnary(bad, &response).ok());
  bad.header.set_program("square_sum");
  bad.payload.pop_back();
  EXPECT_FALSE(EvaluateUnary(bad, &response).ok());

  const MetricsPage page = Page();
  EXPECT_EQ(page.Sum("cipherd_requests_accepted_total"), 5);
  EXPECT_EQ(page.Sum("cipherd_rpc_failures_total"), 2);
  EXPECT_EQ(page.Sum("cipherd_rpc_failures_total", {{"reason", "UNKNOWN_PROGRAM"}}), 1);
  EXPECT_EQ(page.Sum("cipherd_rpc_failures_total", {{"reason", "MALFORMED_VALUE"}}), 1);
  EXPECT_EQ(page.Sum("cipherd_requests_finished_total", {{"outcome", "succeeded"}}), 3);
  EXPECT_EQ(page.Sum("cipherd_requests_finished_total", {{"outcome", "rejected"}}), 2);
  ExpectBalance(page);
}

TEST_F(MetricsTest, BooksBalanceAtEveryScrapeUnderLoad) {
  ASSERT_OK_AND_ASSIGN(const client::ProgramPtr program, client_->GetProgram("square_sum"));
  const value::ValueTree inputs = alice().Encrypt(TestSlots(1, 128));
  constexpr int kRequests = 200;
  absl::BlockingCounter ended(kRequests);
  std::vector<std::shared_ptr<client::EvaluationCall>> calls;
  for (int i = 0; i < kRequests; ++i) {
    // More at once than there are places; some without keys, some cancelled, some too late.
    auto call = client_->StartEvaluation(
        {.program = program,
         .key_set_id = i % 5 == 1 ? std::string(64, 'a') : alice_keys_,
         .request_id = "",
         .inputs = inputs},
        {.timeout = i % 7 == 2 ? absl::Milliseconds(3) : absl::Seconds(20)},
        [&](absl::StatusOr<client::EvaluationResult>) { ended.DecrementCount(); });
    ASSERT_OK(call);
    if (i % 6 == 3) (*call)->Cancel();
    calls.push_back(*std::move(call));
    if (i % 4 == 0) ExpectBalance(Page());
  }
  ended.Wait();
  // The client knows of an end before the daemon has it in its books, where it did not wait for it.
  EXPECT_TRUE(server_->engine().ledger().AwaitIdle(absl::Seconds(20)));
  const MetricsPage page = Page();
  ExpectBalance(page);
  EXPECT_EQ(page.Sum("cipherd_requests_in_flight"), 0);
  EXPECT_GT(page.Sum("cipherd_requests_finished_total", {{"outcome", "succeeded"}}), 0);
  EXPECT_GT(page.Sum("cipherd_requests_finished_total", {{"outcome", "rejected"}}), 0);
  EXPECT_EQ(page.Sum("cipherd_pinned_trees", {{"state", "leased"}}), 0);
}

TEST_F(MetricsTest, LabelsAreOfTheDaemonsChoosing) {
  ExpectGoodRequestSucceeds();
  const size_t sample_count = Page().sample_count();
  v1::EvaluateResponse response;
  for (const char* name : {"made_up", "other", "square_sum\n"}) {
    WireRequest request = MakeWireRequest(name, alice_keys(), alice().Encrypt(TestSlots(1, 128)));
    request.header.set_request_id("chosen");
    EXPECT_FALSE(EvaluateUnary(request, &response).ok());
  }
  const MetricsPage page = Page();
  EXPECT_EQ(page.Sum("cipherd_requests_accepted_total", {{"program", "unknown"}}), 3);
  EXPECT_THAT(page.LabelValues("program"),
              ::testing::UnorderedElementsAre("square_sum", "negate", "unknown"));
  for (const char* text : {"made_up", "chosen", "local"}) {
    EXPECT_THAT(page.text(), Not(HasSubstr(text)));
  }
  EXPECT_THAT(page.text(), Not(HasSubstr(alice_keys())));
  // One code of RPCs (its buckets, sum and count), and the ledger's entries for "unknown".
  EXPECT_LT(page.sample_count(), sample_count + 40);
}

// promtool knows the naming conventions. It comes with Debian's "prometheus".
TEST_F(MetricsTest, PageKeepsTheNamingConventions) {
  ExpectGoodRequestSucceeds();
  const std::string path = directory_.path() / "page";
  std::ofstream(path) << server_->metrics().Text();
  EXPECT_EQ(std::system(("promtool check metrics < " + path).c_str()), 0);
}

// Prometheus does not see the first increment of a counter that begins with it.
TEST_F(MetricsTest, CountersOfAlertsAreThereBeforeTheFirstRequest) {
  const MetricsPage page = Page();
  for (const char* program : {"square_sum", "negate"}) {
    EXPECT_TRUE(page.Has("cipherd_requests_accepted_total", {{"program", program}}));
    EXPECT_TRUE(page.Has("cipherd_request_duration_seconds_count", {{"program", program}}));
    EXPECT_TRUE(page.Has("cipherd_eager_fallbacks_total", {{"program", program}}));
    for (const char* code : {"OK", "UNAVAILABLE", "INTERNAL", "DEADLINE_EXCEEDED"}) {
      EXPECT_TRUE(
          page.Has("cipherd_requests_finished_total", {{"program", program}, {"code", code}}))
          << code;
    }
  }
  EXPECT_TRUE(page.Has("cipherd_rpc_failures_total", {{"reason", "OVERLOADED"}}));
  EXPECT_TRUE(page.Has("cipherd_worker_faults_total"));
  EXPECT_EQ(page.Sum("cipherd_requests_accepted_total"), 0);
  EXPECT_EQ(page.Sum("cipherd_requests_finished_total"), 0);
  EXPECT_EQ(page.Sum("cipherd_rpc_failures_total"), 0);
  EXPECT_EQ(page.Sum("cipherd_worker_faults_total"), 0);
}

TEST_F(MetricsTest, DurationOfAnEvaluationCoversItsStages) {
  ExpectGoodRequestSucceeds();
  const MetricsPage page = Page();
  const MetricsPage::Labels program = {{"program", "square_sum"}};
  EXPECT_EQ(page.Sum("cipherd_request_duration_seconds_count", program), 1);
  EXPECT_GE(page.Sum("cipherd_request_duration_seconds_sum", program),
            page.Sum("cipherd_stage_duration_seconds_sum", program));
}

TEST_F(MetricsTest, ProcessIsShownAsByPrometheusOwnLibraries) {
  const MetricsPage page = Page();
  const double now = absl::ToUnixSeconds(absl::Now());
  EXPECT_GT(page.Sum("process_start_time_seconds"), now - 3600);
  EXPECT_LT(page.Sum("process_start_time_seconds"), now + 2);
  EXPECT_GT(page.Sum("process_cpu_seconds_total"), 0);
  EXPECT_GT(page.Sum("process_resident_memory_bytes"), 1 << 20);
  EXPECT_GT(page.Sum("process_virtual_memory_bytes"), page.Sum("process_resident_memory_bytes"));
  EXPECT_GT(page.Sum("process_open_fds"), 2);
  EXPECT_GE(page.Sum("process_max_fds"), page.Sum("process_open_fds"));
  const std::ifstream file("/dev/null");
  EXPECT_EQ(Page().Sum("process_open_fds"), page.Sum("process_open_fds") + 1);
}

TEST_F(MetricsTest, RefusalsByQuotaAreToldFromOverload) {
  server_.reset();
  ServerOptions options = TestOptions(directory_.path());
  options.engine.quotas = {.requests_per_second = 0.001, .request_burst = 1};
  Start(options);
  ExpectGoodRequestSucceeds();
  const WireRequest request =
      MakeWireRequest("square_sum", alice_keys(), alice().Encrypt(TestSlots(1, 128)));
  v1::EvaluateResponse response;
  EXPECT_EQ(EvaluateUnary(request, &response).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(Page().Sum("cipherd_quota_refusals_total"), 1);
  EXPECT_EQ(Page().Sum("cipherd_rpc_failures_total", {{"reason", "OVERLOADED"}}), 1);
}

TEST_F(MetricsTest, AReloadThatFailsIsShownUntilOneSucceeds) {
  EXPECT_EQ(Page().Sum("cipherd_programs_last_reload_successful"), 1);
  const auto broken = directory_.path() / "broken";
  std::filesystem::create_directory(broken);
  std::ofstream(broken / "program.textproto") << "no program";
  EXPECT_FALSE(server_->ReloadPrograms().ok());
  EXPECT_EQ(Page().Sum("cipherd_programs_last_reload_successful"), 0);
  std::filesystem::remove_all(broken);
  EXPECT_OK(server_->ReloadPrograms());
  EXPECT_EQ(Page().Sum("cipherd_programs_last_reload_successful"), 1);
}

TEST_F(MetricsTest, EveryStageHasAHistogramByProgram) {
  ExpectGoodRequestSucceeds();
  const MetricsPage page = Page();
  for (const char* stage : {"decode", "queue", "batch_wait", "transfer_in", "device_wait", "replay",
                            "transfer_out", "encode"}) {
    EXPECT_EQ(page.Sum("cipherd_stage_duration_seconds_count",
                       {{"program", "square_sum"}, {"stage", stage}}),
              1)
        << stage;
  }
  EXPECT_EQ(
      page.Sum("cipherd_rpc_duration_seconds_count", {{"code", "OK"}, {"method", "Evaluate"}}), 1);
}

TEST_F(MetricsTest, GaugesShowWhatTheDaemonHolds) {
  ExpectGoodRequestSucceeds();
  const MetricsPage page = Page();
  const MetricsPage::Labels program = {{"program", "square_sum"}};
  EXPECT_EQ(page.Sum("cipherd_instances", program), 2);
  EXPECT_EQ(page.Sum("cipherd_instances", {{"state", "leased"}}), 0);
  EXPECT_EQ(page.Sum("cipherd_queue_requests"), 0);
  EXPECT_EQ(page.Sum("cipherd_queue_capacity", program), 8);
  EXPECT_EQ(page.Sum("cipherd_program_ready"), 2);
  EXPECT_EQ(page.Sum("cipherd_key_sets"), 1);
  const double key_bytes = client_->GetProgramMessage("square_sum")->key_bytes();
  EXPECT_EQ(page.Sum("cipherd_key_bytes", {{"tier", "host"}}), key_bytes);
  EXPECT_EQ(page.Sum("cipherd_key_bytes", {{"tier", "device"}}), key_bytes);
  EXPECT_EQ(page.Sum("cipherd_key_bytes", {{"tier", "file"}}), 0);
  EXPECT_EQ(page.Sum("cipherd_key_sets_in_host_memory"), 1);
  EXPECT_EQ(page.Sum("cipherd_key_set_hits_total", {{"tier", "host"}}), 1);
  EXPECT_EQ(page.Sum("cipherd_key_set_hits_total"), 1);
  EXPECT_EQ(page.Sum("cipherd_key_set_loads_total", {{"tier", "device"}}), 1);
  EXPECT_EQ(page.Sum("cipherd_key_set_loads_total"), 1);
  EXPECT_EQ(page.Sum("cipherd_key_set_evictions_total"), 0);
  EXPECT_EQ(page.Sum("cipherd_replays_total", {{"program", "square_sum"}, {"batch_size", "1"}}), 1);
  EXPECT_EQ(page.Sum("cipherd_replays_total"), 1);
  EXPECT_EQ(page.Sum("cipherd_eager_fallbacks_total"), 0);
  for (const char* pool : {"device", "pinned"}) {
    const double allocated = page.Sum("cipherd_memory_pool_allocated_bytes", {{"pool", pool}});
    const double reserved = page.Sum("cipherd_memory_pool_reserved_bytes", {{"pool", pool}});
    EXPECT_GT(allocated, 0);
    EXPECT_GE(reserved, allocated);
    EXPECT_GE(page.Sum("cipherd_memory_pool_budget_bytes", {{"pool", pool}}), reserved);
  }
  EXPECT_EQ(page.Sum("cipherd_build_info"), 1);
  EXPECT_EQ(page.Sum("cipherd_device_info", {{"device", cipherd::testing::ServedDeviceId()}}), 1);
  EXPECT_EQ(page.Sum("cipherd_worker_healthy"), 1);
  EXPECT_EQ(page.Sum("cipherd_device_healthy"), 1);
  EXPECT_EQ(page.Sum("cipherd_request_timeout_seconds", program),
            std::numeric_limits<double>::infinity());
  EXPECT_FALSE(page.Has("cipherd_tls_certificate_expiry_timestamp_seconds"));
}

TEST_F(MetricsTest, KeySetsOnFileAreATierOfTheirOwn) {
  server_.reset();
  const ProgramDirectory keys;
  ServerOptions options = TestOptions(directory_.path());
  options.engine.keys.directory = keys.path() / "keys";
  options.engine.keys.file_budget_bytes = int64_t{1} << 30;
  Start(options);
  const double key_bytes = client_->GetProgramMessage("square_sum")->key_bytes();
  const auto expect = [&](bool is_in_host_memory) {
    const MetricsPage page = Page();
    EXPECT_EQ(page.Sum("cipherd_key_sets"), 1);
    EXPECT_EQ(page.Sum("cipherd_key_sets_in_host_memory"), is_in_host_memory);
    EXPECT_EQ(page.Sum("cipherd_key_bytes", {{"tier", "host"}}), is_in_host_memory * key_bytes);
    EXPECT_GE(page.Sum("cipherd_key_bytes", {{"tier", "file"}}), key_bytes);
    EXPECT_EQ(page.Sum("cipherd_key_budget_bytes", {{"tier", "file"}}), 1 << 30);
  };
  expect(true);
  server_.reset();
  ASSERT_OK_AND_ASSIGN(server_, Server::Start(options, base::Clock::Real()));
  expect(false);
  // Reads them.
  absl::Notification read;
  server_->engine().keys().Acquire("local", alice_keys_)->Await([&](const auto& loaded) {
    EXPECT_OK(loaded);
    read.Notify();
  });
  read.WaitForNotification();
  expect(true);
  EXPECT_EQ(Page().Sum("cipherd_key_set_loads_total", {{"tier", "host"}}), 1);
  EXPECT_EQ(Page().Sum("cipherd_key_set_loads_total"), 1);
  EXPECT_EQ(Page().Sum("cipherd_key_set_hits_total"), 0);
  EXPECT_EQ(Page().Sum("cipherd_key_set_load_failures_total"), 0);
}

TEST(MetricsPageTest, SaysWhenCertificatesEnd) {
  const ProgramDirectory directory;
  TestAuthority authority(directory.path());
  const TestAuthority::Files files = authority.IssueWithNames("server", "server", 60);
  const ProgramDirectory programs;
  ServerOptions options = TestOptions(programs.path());
  options.listen.tls = {.certificate_file = files.certificate,
                        .key_file = files.key,
                        .client_ca_file = authority.ca_file()};
  ASSERT_OK_AND_ASSIGN(const auto server, Server::Start(options, base::Clock::Real()));
  ASSERT_OK_AND_ASSIGN(const MetricsPage page, MetricsPage::Parse(server->metrics().Text()));
  const double now = absl::ToUnixSeconds(absl::Now());
  const auto expiry = [&](const char* certificate) {
    return page.Sum("cipherd_tls_certificate_expiry_timestamp_seconds",
                    {{"certificate", certificate}});
  };
  // However long the start takes; the other one ends an hour after it was made.
  EXPECT_GT(expiry("server"), now - 300);
  EXPECT_LE(expiry("server"), now + 60);
  EXPECT_GT(expiry("client_ca"), now + 60);
  EXPECT_LE(expiry("client_ca"), now + TestAuthority::kLifetimeSeconds);

  std::ofstream(files.certificate) << "no certificate";
  EXPECT_THAT(
      Server::Start(options, base::Clock::Real()).status(),
      cipherd::testing::StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(files.certificate)));
}

TEST(MetricsPageTest, IsServedOverHttpAndAnAddressThatIsTakenIsAnError) {
  const ProgramDirectory programs;
  ServerOptions options = TestOptions(programs.path());
  options.metrics_address = "127.0.0.1:0";
  ASSERT_OK_AND_ASSIGN(const auto server, Server::Start(options, base::Clock::Real()));
  ASSERT_GT(server->metrics_port(), 0);
  const std::string page = HttpGet(server->metrics_port(), "/metrics");
  EXPECT_THAT(page, HasSubstr("200 OK"));
  EXPECT_THAT(page, HasSubstr("cipherd_build_info"));
  EXPECT_THAT(page, HasSubstr("cipherd_program_ready"));

  Metrics second;
  EXPECT_THAT(second.Serve("127.0.0.1:" + std::to_string(server->metrics_port())),
              cipherd::testing::StatusIs(absl::StatusCode::kUnavailable));
}

}  // namespace
}  // namespace cipherd::server
