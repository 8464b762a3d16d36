#include "server/engine/tenant_quotas.h"

#include <optional>
#include <vector>

#include "gtest/gtest.h"
#include "server/engine/failure_reason.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::engine {
namespace {

using ::cipherd::testing::StatusIs;

class TenantQuotasTest : public ::testing::Test {
 protected:
  // The retry delay of the refusal, or nothing where the request is let in (and ends at once).
  std::optional<absl::Duration> Refusal(TenantQuotas& quotas, std::string_view tenant,
                                        int64_t bytes = 1) {
    const absl::Status status = quotas.Admit(tenant, bytes).status();
    if (status.ok()) return std::nullopt;
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kResourceExhausted));
    EXPECT_EQ(ReasonOf(status), FailureReason::kOverloaded);
    return RetryDelayOf(status).value_or(absl::InfiniteDuration());
  }

  base::FakeClock clock_;
};

TEST_F(TenantQuotasTest, WithoutBoundsEverythingIsLetInAndNobodyIsRemembered) {
  TenantQuotas quotas({}, clock_);
  std::vector<TenantQuotas::Admission> admissions;
  for (int i = 0; i < 100; ++i) {
    ASSERT_OK_AND_ASSIGN(admissions.emplace_back(), quotas.Admit("alice", INT64_MAX / 200));
  }
  admissions.clear();
  EXPECT_EQ(quotas.tenant_count(), 0u);
}

TEST_F(TenantQuotasTest, RequestsInFlightAreBoundedByTenant) {
  TenantQuotas quotas({.max_requests = 2}, clock_);
  ASSERT_OK_AND_ASSIGN(TenantQuotas::Admission first, quotas.Admit("alice", 1));
  ASSERT_OK_AND_ASSIGN(const TenantQuotas::Admission second, quotas.Admit("alice", 1));
  EXPECT_GT(Refusal(quotas, "alice").value(), absl::ZeroDuration());
  EXPECT_EQ(Refusal(quotas, "bob"), std::nullopt);
  first.Release();
  first.Release();
  EXPECT_EQ(Refusal(quotas, "alice"), std::nullopt);
}

TEST_F(TenantQuotasTest, BytesInFlightAreBoundedByTenant) {
  TenantQuotas quotas({.max_request_bytes = 100}, clock_);
  ASSERT_OK_AND_ASSIGN(const TenantQuotas::Admission held, quotas.Admit("alice", 60));
  EXPECT_TRUE(Refusal(quotas, "alice", 41).has_value());
  EXPECT_EQ(Refusal(quotas, "alice", 40), std::nullopt);
  EXPECT_EQ(Refusal(quotas, "bob", 100), std::nullopt);
  // No wait helps here.
  const absl::Status too_large = quotas.Admit("bob", 101).status();
  EXPECT_EQ(ReasonOf(too_large), FailureReason::kLimitExceeded);
  EXPECT_EQ(RetryDelayOf(too_large), std::nullopt);
}

TEST_F(TenantQuotasTest, TheRateHoldsInTheLongRunAndTheBurstAtOnce) {
  TenantQuotas quotas({.requests_per_second = 10, .request_burst = 3}, clock_);
  int admitted = 0;
  for (int step = 0; step < 1000; ++step) {
    while (!Refusal(quotas, "alice").has_value()) ++admitted;
    if (step == 0) {
      EXPECT_EQ(admitted, 3);
    }
    clock_.Advance(absl::Milliseconds(37));
  }
  // 999 steps of 37 ms at 10 a second, after the burst.
  EXPECT_NEAR(admitted, 3 + 369, 1);
}

TEST_F(TenantQuotasTest, TheDelayOfARefusalIsEnough) {
  TenantQuotas quotas({.requests_per_second = 4}, clock_);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(Refusal(quotas, "alice"), std::nullopt);
  for (int i = 0; i < 10; ++i) {
    const absl::Duration delay = Refusal(quotas, "alice").value();
    EXPECT_LE(delay, absl::Milliseconds(251));
    clock_.Advance(delay + absl::Nanoseconds(1));
    EXPECT_EQ(Refusal(quotas, "alice"), std::nullopt);
  }
}

TEST_F(TenantQuotasTest, ARefusalCostsNothing) {
  TenantQuotas quotas({.max_requests = 1, .requests_per_second = 1, .request_burst = 2}, clock_);
  {
    ASSERT_OK_AND_ASSIGN(const TenantQuotas::Admission held, quotas.Admit("alice", 1));
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(Refusal(quotas, "alice").has_value());
  }
  EXPECT_EQ(Refusal(quotas, "alice"), std::nullopt);
}

TEST_F(TenantQuotasTest, TenantsWhoCameOnceAreForgotten) {
  TenantQuotas quotas({.requests_per_second = 1}, clock_);
  for (int i = 0; i < 5000; ++i) {
    EXPECT_EQ(Refusal(quotas, "tenant" + std::to_string(i)), std::nullopt);
    clock_.Advance(absl::Milliseconds(10));
  }
  EXPECT_LE(quotas.tenant_count(), 1024u);
}

TEST_F(TenantQuotasTest, NonsenseIsRefused) {
  EXPECT_OK(TenantQuotaOptions{}.Validate());
  EXPECT_FALSE(TenantQuotaOptions{.max_requests = -1}.Validate().ok());
  EXPECT_FALSE((TenantQuotaOptions{.requests_per_second = -1}.Validate().ok()));
  EXPECT_FALSE((TenantQuotaOptions{.request_burst = 2}.Validate().ok()));
}

}  // namespace
}  // namespace cipherd::engine
