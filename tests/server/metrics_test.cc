// The metrics page: what is on it, and that it adds up.
#include "server/metrics.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <sstream>
#include <string>

#include "gtest/gtest.h"
#include "tests/server/service_fixture.h"
#include "tests/testing/served_device.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using namespace server::testing;  // NOLINT: the test's own vocabulary

// Sum of all samples of `name` whose labels contain `labels`.
double Sum(const std::string& text, const std::string& name, const std::string& labels = "") {
  double sum = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const size_t end = line.find_first_of("{ ");
    if (line.substr(0, end) != name || line.find(labels) == std::string::npos) continue;
    sum += std::stod(line.substr(line.rfind(' ') + 1));
  }
  return sum;
}

std::string HttpGet(int port, const std::string& path) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string reply;
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) {
    const std::string request = "GET " + path + " HTTP/1.0\r\n\r\n";
    if (write(fd, request.data(), request.size()) == static_cast<ssize_t>(request.size())) {
      char buffer[4096];
      for (ssize_t n; (n = read(fd, buffer, sizeof(buffer))) > 0;) reply.append(buffer, n);
    }
  }
  close(fd);
  return reply;
}

using MetricsTest = ServiceTest;

TEST_F(MetricsTest, AcceptedIsTheSumOfAllOutcomes) {
  for (int i = 0; i < 3; ++i) ExpectGoodRequestSucceeds(i);
  WireRequest bad = MakeWireRequest("nothing", alice_keys(), alice().Encrypt(TestSlots(1, 128)));
  v1::EvaluateResponse response;
  EXPECT_FALSE(EvaluateUnary(bad, &response).ok());
  bad.header.set_program("square_sum");
  bad.payload.pop_back();
  EXPECT_FALSE(EvaluateUnary(bad, &response).ok());

  const std::string text = server_->metrics().Text();
  EXPECT_EQ(Sum(text, "cipherd_requests_accepted_total"), 5);
  EXPECT_EQ(Sum(text, "cipherd_requests_finished_total", "outcome=\"succeeded\""), 3);
  EXPECT_EQ(Sum(text, "cipherd_requests_finished_total", "outcome=\"rejected\""), 2);
  EXPECT_EQ(Sum(text, "cipherd_requests_accepted_total"),
            Sum(text, "cipherd_requests_finished_total") + Sum(text, "cipherd_requests_in_flight"));
  // A name that a client made up is no label.
  EXPECT_EQ(Sum(text, "cipherd_requests_accepted_total", "program=\"unknown\""), 1);
  EXPECT_THAT(text, Not(HasSubstr("nothing")));
}

TEST_F(MetricsTest, EveryStageHasAHistogramByProgram) {
  ExpectGoodRequestSucceeds();
  const std::string text = server_->metrics().Text();
  for (const char* stage : {"decode", "queue", "transfer_in", "replay", "transfer_out", "encode"}) {
    EXPECT_EQ(Sum(text, "cipherd_stage_seconds_count",
                  "program=\"square_sum\",stage=\"" + std::string(stage) + "\""),
              1)
        << stage;
  }
  EXPECT_EQ(Sum(text, "cipherd_rpc_seconds_count", "code=\"OK\",method=\"Evaluate\""), 1) << text;
}

TEST_F(MetricsTest, GaugesShowWhatTheDaemonHolds) {
  ExpectGoodRequestSucceeds();
  const std::string text = server_->metrics().Text();
  EXPECT_EQ(Sum(text, "cipherd_instances", "program=\"square_sum\""), 2);
  EXPECT_EQ(Sum(text, "cipherd_instances", "state=\"leased\""), 0);
  EXPECT_EQ(Sum(text, "cipherd_queue_requests"), 0);
  EXPECT_EQ(Sum(text, "cipherd_queue_capacity", "square_sum"), 8);
  EXPECT_EQ(Sum(text, "cipherd_program_ready"), 2);
  EXPECT_EQ(Sum(text, "cipherd_key_sets"), 1);
  const double key_bytes = client_->GetProgramMessage("square_sum")->key_bytes();
  EXPECT_EQ(Sum(text, "cipherd_key_bytes", "host"), key_bytes);
  EXPECT_EQ(Sum(text, "cipherd_key_bytes", "device"), key_bytes);
  EXPECT_EQ(Sum(text, "cipherd_key_residency_total", "load"), 1);
  EXPECT_GT(Sum(text, "cipherd_pool_bytes", "kind=\"allocated\""), 0);
  EXPECT_EQ(Sum(text, "cipherd_build_info"), 1);
  EXPECT_EQ(Sum(text, "cipherd_device_info", cipherd::testing::ServedDeviceId()), 1);
  EXPECT_EQ(Sum(text, "cipherd_worker_healthy"), 1);
  EXPECT_THAT(text, Not(HasSubstr(alice_keys())));
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
