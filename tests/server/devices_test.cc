// A daemon on two devices, through the client library. With two GPUs:
// CIPHERD_TEST_DEVICES=cuda:0,cuda:1.
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "tests/server/service_fixture.h"
#include "tests/testing/metrics_page.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server {
namespace {

using ::cipherd::testing::MetricsPage;
using ::cipherd::testing::StatusIs;
using namespace server::testing;  // NOLINT: the test's own vocabulary

std::string DeviceList() {
  const char* devices = std::getenv("CIPHERD_TEST_DEVICES");
  return devices == nullptr ? "cpu,cpu" : devices;
}

class DevicesTest : public ServiceTest {
 protected:
  void SetUp() override {
    ServerOptions options = TestOptions(directory_.path());
    options.device.spec = DeviceList();
    Start(options);
  }
  MetricsPage Page() const { return MetricsPage::Parse(server_->metrics().Text()).value(); }
  std::vector<std::string> ids() const {
    std::vector<std::string> ids;
    for (size_t i = 0; i < server_->engine().device_count(); ++i) {
      ids.push_back(server_->engine().device(i).id().ToString());
    }
    return ids;
  }
};

TEST_F(DevicesTest, ClientsGetRightResultsFromBothDevices) {
  ASSERT_EQ(ids().size(), 2u);
  ASSERT_OK_AND_ASSIGN(const client::ProgramPtr program, client_->GetProgram("square_sum"));
  std::vector<std::thread> clients;
  for (int number = 0; number < 4; ++number) {
    clients.emplace_back([&, number] {
      Party party(program, /*seed=*/100 + number);
      const absl::StatusOr<std::string> keys = party.UploadKeys(*client_);
      ASSERT_OK(keys);
      for (int i = 0; i < 10; ++i) {
        const std::vector<double> x = TestSlots(10 * number + i, 128);
        const absl::StatusOr<client::EvaluationResult> result =
            client_->Evaluate({.program = program,
                               .key_set_id = *keys,
                               .request_id = "test",
                               .inputs = party.Encrypt(x)});
        ASSERT_OK(result);
        EXPECT_LT(MaxDifference(party.Decrypt(result->outputs), SquareSum(x)), kTolerance);
      }
    });
  }
  for (std::thread& client : clients) client.join();
  const MetricsPage page = Page();
  EXPECT_EQ(page.Sum("cipherd_requests_finished_total", {{"outcome", "succeeded"}}), 40);
  EXPECT_EQ(page.Sum("cipherd_requests_in_flight"), 0);
  double uses = 0;
  for (const std::string& id : ids()) {
    SCOPED_TRACE(id);
    // Four sets on two devices: each has some.
    EXPECT_GT(page.Sum("cipherd_key_set_loads_total", {{"tier", "device"}, {"device", id}}), 0);
    EXPECT_LE(page.Sum("cipherd_key_bytes", {{"tier", "device"}, {"device", id}}),
              page.Sum("cipherd_key_budget_bytes", {{"tier", "device"}, {"device", id}}));
    uses += page.Sum("cipherd_key_set_hits_total", {{"tier", "device"}, {"device", id}}) +
            page.Sum("cipherd_key_set_loads_total", {{"tier", "device"}, {"device", id}});
  }
  // Each request pins its set once where it runs.
  EXPECT_GE(uses, 40);
}

TEST_F(DevicesTest, MetricsHaveARowForEachDevice) {
  const MetricsPage page = Page();
  for (const std::string& id : ids()) {
    SCOPED_TRACE(id);
    for (const char* pool : {"device", "pinned"}) {
      EXPECT_TRUE(
          page.Has("cipherd_memory_pool_allocated_bytes", {{"pool", pool}, {"device", id}}));
      EXPECT_GT(page.Sum("cipherd_memory_pool_budget_bytes", {{"pool", pool}, {"device", id}}), 0);
    }
    EXPECT_GT(page.Sum("cipherd_memory_pool_allocated_bytes", {{"pool", "device"}, {"device", id}}),
              0);
    EXPECT_TRUE(page.Has("cipherd_key_bytes", {{"tier", "device"}, {"device", id}}));
    EXPECT_TRUE(page.Has("cipherd_key_set_device_waits_total", {{"device", id}}));
    EXPECT_EQ(page.Sum("cipherd_worker_healthy", {{"device", id}}), 1);
    EXPECT_EQ(page.Sum("cipherd_worker_faults_total", {{"device", id}}), 0);
    EXPECT_EQ(page.Sum("cipherd_device_healthy", {{"device", id}}), 1);
    EXPECT_EQ(page.Sum("cipherd_device_info", {{"device", id}}), 1);
    EXPECT_EQ(page.Sum("cipherd_instances", {{"program", "square_sum"}, {"device", id}}),
              TestOptions(directory_.path()).engine.instances);
  }
  // What is one for all devices has no row for each.
  EXPECT_FALSE(page.Has("cipherd_key_bytes", {{"tier", "host"}, {"device", ids().front()}}));
}

TEST_F(DevicesTest, ServerInfoNamesThemAll) {
  ASSERT_OK_AND_ASSIGN(const v1::ServerInfo info, client_->GetServerInfo());
  const std::vector<std::string> named = absl::StrSplit(info.device(), ',');
  EXPECT_EQ(named, ids());
  EXPECT_FALSE(info.device_name().empty());
}

TEST_F(DevicesTest, AReloadThatChangesNothingLeavesBothServing) {
  EXPECT_OK(server_->ReloadPrograms());
  ExpectGoodRequestSucceeds();
}

TEST(DeviceOption, ABadListIsRefusedBeforeAnythingIsOpened) {
  const ProgramDirectory directory;
  ServerOptions options = TestOptions(directory.path());
  options.device.spec = "cpu,cuda:0";
  EXPECT_THAT(Server::Start(options, base::Clock::Real()),
              StatusIs(absl::StatusCode::kInvalidArgument, ::testing::HasSubstr("not both")));
}

}  // namespace
}  // namespace cipherd::server
