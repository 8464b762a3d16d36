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
using ::testing::AllOf;
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

  const ProgramDirectory directory_;
  TestAuthority authority_{directory_.path()};
};

TEST_F(CertificateTest, EndsWhenItSays) {
  const absl::Time before = absl::Now();
  const std::string file = Certificate(7200);
  ASSERT_OK_AND_ASSIGN(const absl::Time expiry, EarliestExpiry(Read(file), file));
  // A certificate counts whole seconds.
  EXPECT_GT(expiry, before + absl::Seconds(7199));
  EXPECT_LE(expiry, absl::Now() + absl::Seconds(7200));
}

TEST_F(CertificateTest, AChainEndsWithItsFirst) {
  const std::string early = Read(Certificate(600));
  const std::string late = Read(Certificate(7200));
  ASSERT_OK_AND_ASSIGN(const absl::Time expected, EarliestExpiry(early, "early.pem"));
  for (const std::string& chain : {early + late, late + early, late + "\nremarks\n" + early}) {
    ASSERT_OK_AND_ASSIGN(const absl::Time expiry, EarliestExpiry(chain, "chain.pem"));
    EXPECT_EQ(expiry, expected);
  }
}

TEST_F(CertificateTest, WhatIsNoneIsAnErrorThatNamesTheFile) {
  const std::string good = Read(Certificate(600));
  const auto refused = [](const char* what) {
    return StatusIs(absl::StatusCode::kInvalidArgument,
                    AllOf(HasSubstr("given.pem"), HasSubstr(what)));
  };
  EXPECT_THAT(EarliestExpiry("", "given.pem"), refused("none"));
  EXPECT_THAT(EarliestExpiry("no certificate", "given.pem"), refused("none"));
  EXPECT_THAT(EarliestExpiry(good.substr(0, good.size() / 2), "given.pem"), refused("damaged"));
  std::string damaged = good;
  damaged[damaged.size() / 2] = '!';
  EXPECT_THAT(EarliestExpiry(good + damaged, "given.pem"), refused("damaged"));
}

TEST_F(CertificateTest, AKeyIsItsCertificates) {
  const TestAuthority::Files own = authority_.Issue("own"), other = authority_.Issue("other");
  const std::string certificate = Read(own.certificate);
  EXPECT_OK(CheckKeyOfCertificate(certificate, "own.pem", Read(own.key), "own.key"));
  EXPECT_THAT(CheckKeyOfCertificate(certificate, "own.pem", Read(other.key), "other.key"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("own.pem"), HasSubstr("other.key"))));
  EXPECT_THAT(CheckKeyOfCertificate(certificate, "own.pem", "no key", "given.key"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("given.key")));
  EXPECT_THAT(CheckKeyOfCertificate("none", "given.pem", Read(own.key), "own.key"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("given.pem")));
}

}  // namespace
}  // namespace cipherd::server
