#include "server/call_gate.h"

#include <list>
#include <memory>

#include "gtest/gtest.h"
#include "server/caller.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;

TEST(CallGateTest, NoCallerHasAllPlacesAndWhoIsRefusedTakesNone) {
  CallGate gate({.max_calls = 3, .max_calls_per_caller = 2});
  std::list<CallGate::Pass> passes;
  const auto enter = [&](const char* caller) -> const CallGate::Pass& {
    return passes.emplace_back(gate, caller);
  };
  EXPECT_TRUE(enter("a").is_open());
  EXPECT_TRUE(enter("a").is_open());
  for (int i = 0; i < 5; ++i) {
    EXPECT_THAT(TooManyCalls(enter("a")), StatusIs(absl::StatusCode::kResourceExhausted,
                                                   HasSubstr("the caller has 2 calls")));
  }
  EXPECT_EQ(gate.under_way(), 2);
  EXPECT_TRUE(enter("b").is_open());
  EXPECT_THAT(TooManyCalls(enter("c")),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("the daemon has 3 calls")));
  passes.pop_front();
  EXPECT_TRUE(enter("c").is_open());
  passes.clear();
  EXPECT_EQ(gate.under_way(), 0);
}

TEST(CallGateTest, NoTenantHasAllPlacesOfACaller) {
  CallGate gate({.max_calls = 4, .max_calls_per_caller = 3, .max_calls_per_tenant = 2});
  std::list<CallGate::Pass> passes;
  const auto enter = [&](const char* tenant) -> CallGate::Pass& {
    CallGate::Pass& pass = passes.emplace_back(gate, "gateway");
    if (pass.is_open()) pass.CountTenant(tenant);
    return pass;
  };
  EXPECT_TRUE(enter("alice").is_open());
  EXPECT_TRUE(enter("alice").is_open());
  for (int i = 0; i < 5; ++i) {
    EXPECT_THAT(TooManyCalls(enter("alice")), StatusIs(absl::StatusCode::kResourceExhausted,
                                                       HasSubstr("the tenant has 2 calls")));
  }
  EXPECT_EQ(gate.under_way(), 2) << "who is refused has no place of the caller's";
  EXPECT_TRUE(enter("bob").is_open());
  EXPECT_THAT(TooManyCalls(enter("bob")),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("the caller has 3 calls")));
  passes.pop_front();
  EXPECT_TRUE(enter("alice").is_open());
  passes.clear();
  EXPECT_EQ(gate.under_way(), 0);
  EXPECT_TRUE(enter("alice").is_open());
}

TEST(PeerHostTest, OfAPeerTheHostIsLeft) {
  EXPECT_EQ(PeerHost("ipv4:192.0.2.1:33000"), PeerHost("ipv4:192.0.2.1:33001"));
  EXPECT_NE(PeerHost("ipv4:192.0.2.1:33000"), PeerHost("ipv4:192.0.2.2:33000"));
  EXPECT_EQ(PeerHost("ipv6:%5B2001:db8:0:1::1%5D:1"), PeerHost("ipv6:[2001:db8:0:1:f::2]:2"));
  EXPECT_NE(PeerHost("ipv6:%5B2001:db8:0:1::1%5D:1"), PeerHost("ipv6:%5B2001:db8:0:2::1%5D:1"));
  EXPECT_EQ(PeerHost("unix:"), PeerHost("unix:"));
  EXPECT_EQ(PeerHost("ipv6:%5D%5B"), "ipv6") << "damaged: no crash";
  EXPECT_EQ(PeerHost(""), "");
}

}  // namespace
}  // namespace cipherd::server
