// Connections of a daemon that listens: how many there may be, and how long they may keep silent.
#include <netdb.h>

#include <filesystem>
#include <list>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "server/file_limit.h"
#include "server/listener.h"
#include "tests/server/loopback_connection.h"
#include "tests/server/service_fixture.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;
using namespace server::testing;  // NOLINT: the test's own vocabulary

class ConnectionsTest : public ServiceTest {
 protected:
  void SetUp() override {}
  void StartWith(const std::function<void(TransportOptions&)>& change) {
    ServerOptions options = TestOptions(directory_.path());
    change(options.transport);
    ASSERT_OK_AND_ASSIGN(server_, Server::Start(options, base::Clock::Real()));
  }
  void TearDown() override { EXPECT_OK(server_->Shutdown()); }

  bool IsServed(const char* from) {
    return connections_.emplace_back(server_->port(), from).IsServed();
  }

  std::list<LoopbackConnection> connections_;
};

TEST_F(ConnectionsTest, ThoseBeyondTheBoundsAreClosedAtOnceAndThoseWithinGoOn) {
  StartWith([](TransportOptions& transport) {
    transport.connections = {.max_connections = 3, .max_connections_per_peer = 2};
  });
  EXPECT_TRUE(IsServed("127.0.0.2"));
  EXPECT_TRUE(IsServed("127.0.0.2"));
  EXPECT_FALSE(IsServed("127.0.0.2"));
  EXPECT_TRUE(IsServed("127.0.0.3"));
  EXPECT_FALSE(IsServed("127.0.0.4"));
  EXPECT_THAT(
      server_->metrics().Text(),
      AllOf(HasSubstr("\ncipherd_connections 3\n"), HasSubstr("\ncipherd_connections_limit 3\n"),
            HasSubstr("\ncipherd_connections_refused_total{bound=\"all\"} 1\n"),
            HasSubstr("\ncipherd_connections_refused_total{bound=\"peer\"} 1\n")));
  // Until the daemon has seen it go.
  connections_.front().Close();
  while (!IsServed("127.0.0.4")) std::this_thread::yield();
}

TEST_F(ConnectionsTest, OneAddressCannotKeepOthersFromTheHealthPort) {
  ServerOptions options = TestOptions(directory_.path());
  options.health_address = "127.0.0.1:0";
  ASSERT_OK_AND_ASSIGN(server_, Server::Start(options, base::Clock::Real()));
  int held = 0;
  while (connections_.emplace_back(server_->health_port(), "127.0.0.2").IsServed()) ++held;
  EXPECT_GT(held, 8);
  EXPECT_TRUE(connections_.emplace_back(server_->health_port(), "127.0.0.3").IsServed());
}

TEST_F(ConnectionsTest, OneThatNeverSpeaksEnds) {
  StartWith([](TransportOptions& transport) { transport.handshake_timeout = absl::Seconds(1); });
  LoopbackConnection& silent = connections_.emplace_back(server_->port());
  ASSERT_TRUE(silent.Connect());
  EXPECT_TRUE(silent.Ends());
}

TEST_F(ConnectionsTest, OneWithoutACallEnds) {
  StartWith([](TransportOptions& transport) { transport.max_connection_idle = absl::Seconds(1); });
  ASSERT_TRUE(IsServed("127.0.0.1"));
  EXPECT_TRUE(connections_.front().Ends());
}

TEST_F(ConnectionsTest, OneOfTheHealthPortWithoutACallEndsSooner) {
  ServerOptions options = TestOptions(directory_.path());
  options.health_address = "127.0.0.1:0";
  options.transport.max_health_connection_idle = absl::Seconds(1);
  ASSERT_OK_AND_ASSIGN(server_, Server::Start(options, base::Clock::Real()));
  ASSERT_TRUE(IsServed("127.0.0.1"));
  LoopbackConnection& health = connections_.emplace_back(server_->health_port());
  ASSERT_TRUE(health.IsServed());
  EXPECT_TRUE(health.Ends());
  // One of the other port has longer: it is answered yet.
  EXPECT_TRUE(connections_.front().AnswersPing());
}

TEST_F(ConnectionsTest, APathServesAsAPortDoesAndIsGoneAfterwards) {
  const std::filesystem::path path = directory_.path() / "socket";
  ServerOptions options = TestOptions(directory_.path());
  options.listen.address = "unix:" + path.string();
  for (int start = 0; start < 2; ++start) {
    ASSERT_OK_AND_ASSIGN(server_, Server::Start(options, base::Clock::Real()));
    EXPECT_EQ(server_->port(), 0);
    const auto stub = v1::EvaluationService::NewStub(
        grpc::CreateChannel(options.listen.address, grpc::InsecureChannelCredentials()));
    grpc::ClientContext context;
    v1::ServerInfo info;
    EXPECT_TRUE(stub->GetServerInfo(&context, {}, &info).ok());
    EXPECT_OK(server_->Shutdown());
    EXPECT_FALSE(std::filesystem::exists(path));
  }
}

TEST(ListenerTest, SaysWhereItCannotListen) {
  ConnectionTable table({}, base::Clock::Real());
  const auto open = [&](const std::string& address) {
    return Listener::Open(address, absl::Seconds(20), table).status();
  };
  ASSERT_OK_AND_ASSIGN(const auto listener,
                       Listener::Open("127.0.0.1:0", absl::Seconds(20), table));
  const std::string taken = absl::StrCat("127.0.0.1:", listener->port());
  EXPECT_THAT(open(taken), StatusIs(absl::StatusCode::kUnavailable, HasSubstr(taken)));
  EXPECT_THAT(open("nowhere"), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("nowhere")));
  for (const char* port : {"port", "", "74800", "99999999999", "-1", "1x"}) {
    EXPECT_THAT(open(absl::StrCat("127.0.0.1:", port)),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("0 to 65535")))
        << port;
  }
  EXPECT_THAT(open("unix:"), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(open("unix:" + std::string(200, 'x')), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(open("unix:/no/such/directory/socket"), StatusIs(absl::StatusCode::kUnavailable));
}

// Else clients of that address would reach somebody else.
TEST(ListenerTest, ANameIsListenedOnAtAllOfItsAddressesOrNot) {
  ConnectionTable table({}, base::Clock::Real());
  for (const char* one : {"127.0.0.1:0", "[::1]:0"}) {
    const auto other = Listener::Open(one, absl::Seconds(20), table);
    if (!other.ok()) continue;  // a machine without it
    const std::string both = absl::StrCat("localhost:", (*other)->port());
    addrinfo hints = {};
    addrinfo* found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    ASSERT_EQ(getaddrinfo("localhost", nullptr, &hints, &found), 0);
    const bool is_both = found->ai_next != nullptr;
    freeaddrinfo(found);
    if (!is_both) GTEST_SKIP() << "localhost has one address here";
    EXPECT_THAT(Listener::Open(both, absl::Seconds(20), table).status(),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr(both)));
  }
}

TEST(ListenerTest, EveryAddressOfAMachineIsOfBothKinds) {
  ConnectionTable table({}, base::Clock::Real());
  for (const char* any : {"0.0.0.0:0", "[::]:0"}) {
    ASSERT_OK_AND_ASSIGN(const auto listener, Listener::Open(any, absl::Seconds(20), table));
    EXPECT_TRUE(LoopbackConnection(listener->port()).Connect()) << any;
  }
}

TEST(FileLimitTest, APartOfTheFilesIsKeptForWhatAreNoConnections) {
  const ConnectionLimits wanted = {.max_connections = 4096, .max_connections_per_peer = 100};
  EXPECT_EQ(WithinFileLimit(wanted, 65536).max_connections, 4096);
  EXPECT_EQ(WithinFileLimit(wanted, 1024).max_connections, 512);
  EXPECT_EQ(WithinFileLimit(wanted, 200).max_connections, 100);
  EXPECT_EQ(WithinFileLimit(wanted, 1).max_connections, 1);
  EXPECT_EQ(WithinFileLimit(wanted, 200).max_connections_per_peer, 100);
}

}  // namespace
}  // namespace cipherd::server
