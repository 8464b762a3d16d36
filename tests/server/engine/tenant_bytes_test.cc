#include "server/engine/tenant_bytes.h"

#include <utility>

#include "gtest/gtest.h"
#include "server/engine/failure_reason.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::engine {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;

TEST(TenantBytesTest, EachTenantHasTheWholeLimit) {
  TenantBytes tenants(100);
  ASSERT_OK_AND_ASSIGN(const TenantBytes::Charge first, tenants.Reserve("alice", 60));
  const absl::Status refused = tenants.Reserve("alice", 41).status();
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted,
                                HasSubstr("asked for 41 bytes, 40 of 100")));
  EXPECT_EQ(ReasonOf(refused), FailureReason::kOverloaded);
  EXPECT_OK(tenants.Reserve("alice", 40));
  EXPECT_OK(tenants.Reserve("bob", 100));
  EXPECT_EQ(tenants.used_bytes("alice"), 60);
  EXPECT_EQ(tenants.used_bytes("bob"), 0);
}

TEST(TenantBytesTest, AChargeIsGivenBackOnceHoweverItEnds) {
  TenantBytes tenants(100);
  ASSERT_OK_AND_ASSIGN(TenantBytes::Charge kept, tenants.Reserve("alice", 60));
  {
    ASSERT_OK_AND_ASSIGN(TenantBytes::Charge other, tenants.Reserve("alice", 40));
    other = std::move(kept);
    EXPECT_EQ(tenants.used_bytes("alice"), 60) << "what it had before is given back";
    EXPECT_EQ(other.tenant(), "alice");
    other.ShrinkTo(25);
    EXPECT_EQ(other.bytes(), 25);
    EXPECT_EQ(tenants.used_bytes("alice"), 25);
  }
  EXPECT_EQ(tenants.used_bytes("alice"), 0);
}

TEST(TenantBytesTest, WhatIsThereAlreadyMayExceedTheLimit) {
  TenantBytes tenants(100);
  {
    const TenantBytes::Charge adopted = tenants.Adopt("alice", 130);
    EXPECT_EQ(tenants.available_bytes("alice"), -30);
    EXPECT_THAT(tenants.Reserve("alice", 1), StatusIs(absl::StatusCode::kResourceExhausted));
  }
  EXPECT_OK(tenants.Reserve("alice", 100));
}

}  // namespace
}  // namespace cipherd::engine
