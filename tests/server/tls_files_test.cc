// What is taken of the daemon's certificates when their files change, and what is not.
#include "server/tls_files.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

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

class TlsFilesTest : public ::testing::Test {
 protected:
  TlsFilesTest() : clock_(absl::Now()) {
    options_ = {.certificate_file = files_.path() / "server.pem",
                .key_file = files_.path() / "server.key"};
    Replace(authority_.Issue("first"));
  }

  static void Replace(const std::string& from, const std::string& to) {
    const std::string beside = to + ".new";
    std::filesystem::copy_file(from, beside);
    std::filesystem::rename(beside, to);
  }
  void Replace(const TestAuthority::Files& files) {
    Replace(files.certificate, options_.certificate_file);
    Replace(files.key, options_.key_file);
  }
  std::unique_ptr<TlsFiles> Open() {
    return TlsFiles::Open(options_, clock_,
                          [this](const TlsMaterial& material) {
                            taken_.push_back(material.certificate_chain);
                          })
        .value();
  }
  // Whether something new is there a second later.
  bool HasNew(TlsFiles& files) {
    clock_.Advance(absl::Seconds(1));
    return files.TakeNew().has_value();
  }

  const ProgramDirectory files_;
  const ProgramDirectory certificates_;
  TestAuthority authority_{certificates_.path()};
  base::FakeClock clock_;
  TlsOptions options_;
  std::vector<std::string> taken_;
};

TEST_F(TlsFilesTest, WhatIsThereIsTakenOnceAndAgainWhenItHasChanged) {
  const auto files = Open();
  EXPECT_TRUE(files->TakeNew().has_value());
  EXPECT_FALSE(HasNew(*files));
  Replace(authority_.Issue("second"));
  EXPECT_FALSE(files->TakeNew().has_value()) << "it has been looked at within the second";
  EXPECT_TRUE(HasNew(*files));
  EXPECT_FALSE(HasNew(*files));
  ASSERT_EQ(taken_.size(), 2u);
  EXPECT_NE(taken_[0], taken_[1]);
}

TEST_F(TlsFilesTest, HalfARenewalIsNotTaken) {
  const auto files = Open();
  files->TakeNew();
  const TestAuthority::Files second = authority_.Issue("second");
  Replace(second.certificate, options_.certificate_file);
  EXPECT_FALSE(HasNew(*files)) << "its key is not there yet";
  Replace(second.key, options_.key_file);
  EXPECT_TRUE(HasNew(*files));
}

TEST_F(TlsFilesTest, WhatIsDamagedMissingOrHasEndedIsNotTaken) {
  const auto files = Open();
  files->TakeNew();
  std::ofstream(options_.certificate_file) << "damaged";
  EXPECT_FALSE(HasNew(*files));
  std::filesystem::remove(options_.key_file);
  EXPECT_FALSE(HasNew(*files));
  Replace(authority_.IssueWithNames("ended", "ended", -60));
  EXPECT_FALSE(HasNew(*files));
  EXPECT_EQ(taken_.size(), 1u);
  Replace(authority_.Issue("second"));
  EXPECT_TRUE(HasNew(*files));
}

TEST_F(TlsFilesTest, AClockThatIsSetBackDoesNotStopIt) {
  const auto files = Open();
  files->TakeNew();
  Replace(authority_.Issue("second"));
  clock_.Advance(-absl::Hours(1));
  EXPECT_TRUE(files->TakeNew().has_value());
}

TEST_F(TlsFilesTest, WhatIsWrongAtTheStartIsNamed) {
  const auto error = [&] { return TlsFiles::Open(options_, clock_).status(); };
  options_.client_ca_file = files_.path() / "clients.pem";
  EXPECT_THAT(error(), StatusIs(absl::StatusCode::kNotFound, HasSubstr("clients.pem")));
  std::ofstream(options_.client_ca_file) << "damaged";
  EXPECT_THAT(error(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("clients.pem")));
  options_.client_ca_file.clear();
  Replace(authority_.Issue("second").key, options_.key_file);
  EXPECT_THAT(error(), StatusIs(absl::StatusCode::kInvalidArgument,
                                AllOf(HasSubstr("server.key"), HasSubstr("server.pem"))));
  Replace(authority_.IssueWithNames("ended", "ended", -60));
  EXPECT_THAT(error(), StatusIs(absl::StatusCode::kFailedPrecondition,
                                AllOf(HasSubstr("server.pem"), HasSubstr("has ended"))));
}

}  // namespace
}  // namespace cipherd::server
