// When certificates end.
#include "server/certificate.h"

#include <fstream>
#include <iterator>
#include <string>

#include "absl/time/clock.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/service_fixture.h"
#include "tests/server/test_certificates.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;
using namespace server::testing;  // NOLINT: the test's own vocabulary

class CertificateTest : public ::testing::Test {
 protected:
  // A PEM file of one certificate that lives so long.
  std::string Certificate(long lifetime_seconds) {
    return authority_.IssueWithNames("of " + std::to_string(lifetime_seconds), "", lifetime_seconds)
        .certificate;
  }
  static std::string Read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  std::string Write(const std::string& text) const {
    const std::string path = directory_.path() / "written.pem";
    std::ofstream(path) << text;
    return path;
  }

  const ProgramDirectory directory_;
  TestAuthority authority_{directory_.path()};
};

TEST_F(CertificateTest, EndsWhenItSays) {
  const absl::Time before = absl::Now();
  const std::string file = Certificate(7200);
  ASSERT_OK_AND_ASSIGN(const absl::Time expiry, EarliestExpiry(file));
  // A certificate counts whole seconds.
  EXPECT_GT(expiry, before + absl::Seconds(7199));
  EXPECT_LE(expiry, absl::Now() + absl::Seconds(7200));
}

TEST_F(CertificateTest, AChainEndsWithItsFirst) {
  const std::string early = Read(Certificate(600));
  const std::string late = Read(Certificate(7200));
  ASSERT_OK_AND_ASSIGN(const absl::Time expected, EarliestExpiry(Write(early)));
  for (const std::string& chain : {early + late, late + early, late + "\nremarks\n" + early}) {
    ASSERT_OK_AND_ASSIGN(const absl::Time expiry, EarliestExpiry(Write(chain)));
    EXPECT_EQ(expiry, expected);
  }
}

TEST_F(CertificateTest, WhatIsNoneIsAnErrorThatNamesTheFile) {
  const std::string good = Read(Certificate(600));
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(EarliestExpiry(directory_.path() / "missing"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("missing")));
  EXPECT_THAT(EarliestExpiry(Write("")), StatusIs(kInvalid, HasSubstr("written.pem")));
  EXPECT_THAT(EarliestExpiry(Write("no certificate")), StatusIs(kInvalid, HasSubstr("none")));
  EXPECT_THAT(EarliestExpiry(Write(good.substr(0, good.size() / 2))),
              StatusIs(kInvalid, HasSubstr("damaged")));
  std::string damaged = good;
  damaged[damaged.size() / 2] = '!';
  EXPECT_THAT(EarliestExpiry(Write(good + damaged)), StatusIs(kInvalid, HasSubstr("damaged")));
}

}  // namespace
}  // namespace cipherd::server
