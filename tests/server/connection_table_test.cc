#include "server/connection_table.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "core/base/file_descriptor.h"
#include "gtest/gtest.h"

namespace cipherd::server {
namespace {

using Verdict = ConnectionTable::Verdict;

base::FileDescriptor NewSocket() { return base::FileDescriptor(socket(AF_INET, SOCK_STREAM, 0)); }

class ConnectionTableTest : public ::testing::Test {
 protected:
  base::FakeClock clock_;
  ConnectionTable table_{{.max_connections = 4, .max_connections_per_peer = 2}, clock_};
};

TEST_F(ConnectionTableTest, NoPeerHasMoreThanItsOwnAndAllTogetherNoMoreThanAll) {
  std::vector<base::FileDescriptor> sockets;
  const auto admit = [&](const char* peer) {
    sockets.push_back(NewSocket());
    return table_.Admit(sockets.back().get(), peer);
  };
  EXPECT_EQ(admit("a"), Verdict::kAdmitted);
  EXPECT_EQ(admit("a"), Verdict::kAdmitted);
  EXPECT_EQ(admit("a"), Verdict::kTooManyOfPeer);
  EXPECT_EQ(admit("b"), Verdict::kAdmitted);
  EXPECT_EQ(admit(""), Verdict::kAdmitted);
  EXPECT_EQ(admit("c"), Verdict::kTooMany);
  EXPECT_EQ(admit(""), Verdict::kTooMany);
  EXPECT_EQ(table_.CountOpen(), 4u);
  EXPECT_EQ(table_.CountOf(Verdict::kAdmitted), 4u);
  EXPECT_EQ(table_.CountOf(Verdict::kTooMany), 2u);
  EXPECT_EQ(table_.CountOf(Verdict::kTooManyOfPeer), 1u);
}

TEST_F(ConnectionTableTest, WhatHasBeenClosedMakesRoom) {
  base::FileDescriptor first = NewSocket();
  const base::FileDescriptor second = NewSocket();
  const base::FileDescriptor third = NewSocket();
  ASSERT_EQ(table_.Admit(first.get(), "a"), Verdict::kAdmitted);
  ASSERT_EQ(table_.Admit(second.get(), "a"), Verdict::kAdmitted);
  ASSERT_EQ(table_.Admit(third.get(), "a"), Verdict::kTooManyOfPeer);
  first.Close();
  EXPECT_EQ(table_.Admit(third.get(), "a"), Verdict::kTooManyOfPeer) << "looked at again so soon";
  clock_.Advance(ConnectionTable::kLookInterval);
  EXPECT_EQ(table_.Admit(third.get(), "a"), Verdict::kAdmitted);
}

TEST_F(ConnectionTableTest, ADescriptorThatIsGivenAgainWasClosedInBetween) {
  for (int i = 0; i < 10; ++i) {
    const base::FileDescriptor socket = NewSocket();
    EXPECT_EQ(table_.Admit(socket.get(), "a"), Verdict::kAdmitted) << i;
  }
  EXPECT_EQ(table_.CountOpen(), 0u);
}

TEST_F(ConnectionTableTest, AnotherFileUnderTheSameNumberIsNoConnection) {
  base::FileDescriptor socket = NewSocket();
  const int number = socket.get();
  ASSERT_EQ(table_.Admit(number, "a"), Verdict::kAdmitted);
  EXPECT_EQ(table_.CountOpen(), 1u);
  const base::FileDescriptor other = NewSocket();
  ASSERT_EQ(dup2(other.get(), number), number);
  EXPECT_EQ(table_.CountOpen(), 0u);
}

std::string KeyOf(int family, const char* host, int port) {
  sockaddr_storage storage = {};
  if (family == AF_INET) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    EXPECT_EQ(inet_pton(AF_INET, host, &address.sin_addr), 1);
    std::memcpy(&storage, &address, sizeof(address));
  } else {
    sockaddr_in6 address = {};
    address.sin6_family = AF_INET6;
    address.sin6_port = htons(static_cast<uint16_t>(port));
    EXPECT_EQ(inet_pton(AF_INET6, host, &address.sin6_addr), 1);
    std::memcpy(&storage, &address, sizeof(address));
  }
  return PeerKey(storage);
}

TEST(PeerKeyTest, APeerIsAnAddressOrANetworkOfIpv6) {
  EXPECT_EQ(KeyOf(AF_INET, "192.0.2.1", 1), KeyOf(AF_INET, "192.0.2.1", 2));
  EXPECT_NE(KeyOf(AF_INET, "192.0.2.1", 1), KeyOf(AF_INET, "192.0.2.2", 1));
  EXPECT_EQ(KeyOf(AF_INET, "192.0.2.1", 1), KeyOf(AF_INET6, "::ffff:192.0.2.1", 1));
  EXPECT_EQ(KeyOf(AF_INET6, "2001:db8:0:1::1", 1), KeyOf(AF_INET6, "2001:db8:0:1:f::2", 2));
  EXPECT_NE(KeyOf(AF_INET6, "2001:db8:0:1::1", 1), KeyOf(AF_INET6, "2001:db8:0:2::1", 1));
  sockaddr_storage none = {};
  none.ss_family = AF_UNIX;
  EXPECT_EQ(PeerKey(none), "");
}

}  // namespace
}  // namespace cipherd::server
