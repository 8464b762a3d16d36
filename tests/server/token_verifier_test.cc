// What is remembered of tokens, and that it is never good for longer than the token and its key.
#include "server/token_verifier.h"

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/programs/temporary_directory.h"
#include "tests/server/token_signer.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;
using namespace server::testing;  // NOLINT: the test's own vocabulary

class TokenVerifierTest : public ::testing::Test {
 protected:
  TokenVerifierTest()
      : clock_(absl::FromUnixSeconds(1000)),
        options_({.keys = directory_.Write("keys/k1.pem", signer_.PublicPem()),
                  .issuer = "idp",
                  .audience = "cipherd"}) {
    files_ = TokenKeyFiles::Open(options_.keys).value();
    verifier_.emplace(options_, *files_, clock_);
  }

  std::string TokenOf(const std::string& tenant, int64_t expiry = 2000) {
    return signer_.Sign(R"({"alg":"ES256"})",
                        absl::StrCat(R"({"iss":"idp","aud":"cipherd","nbf":900,"sub":")", tenant,
                                     R"(","exp":)", expiry, "}"));
  }

  const programs::TemporaryDirectory directory_;
  const TokenSigner signer_{TokenSigner::Kind::kP256};
  base::FakeClock clock_;
  const TokenOptions options_;
  std::unique_ptr<TokenKeyFiles> files_;
  std::optional<TokenVerifier> verifier_;
};

TEST_F(TokenVerifierTest, WhatIsRememberedIsTheTokensOwn) {
  const std::string alice = TokenOf("alice"), bob = TokenOf("bob");
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(verifier_->TenantOf(alice).value(), "token:idp#alice");
    EXPECT_EQ(verifier_->TenantOf(bob).value(), "token:idp#bob");
  }
  EXPECT_EQ(verifier_->remembered(), 2u);
}

TEST_F(TokenVerifierTest, WhatIsRememberedEndsWithTheToken) {
  const std::string token = TokenOf("alice");
  EXPECT_OK(verifier_->TenantOf(token));
  clock_.Advance(absl::Seconds(1029));
  EXPECT_OK(verifier_->TenantOf(token)) << "within the leeway";
  clock_.Advance(absl::Seconds(1));
  EXPECT_THAT(verifier_->TenantOf(token),
              StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("exp")));
}

TEST_F(TokenVerifierTest, WhatIsRememberedEndsWithTheKey) {
  const std::string token = TokenOf("alice");
  EXPECT_OK(verifier_->TenantOf(token));
  const TokenSigner other(TokenSigner::Kind::kP256);
  std::filesystem::rename(directory_.Write("new", other.PublicPem()), options_.keys);
  files_->Look();
  EXPECT_THAT(verifier_->TenantOf(token),
              StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("signature")));
  EXPECT_EQ(verifier_->remembered(), 0u);
}

TEST_F(TokenVerifierTest, StrangersFillNothing) {
  const TokenSigner stranger(TokenSigner::Kind::kP256);
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(verifier_
                     ->TenantOf(stranger.Sign(R"({"alg":"ES256"})",
                                              absl::StrCat(R"({"iss":"idp","jti":")", i, R"("})")))
                     .ok());
  }
  EXPECT_EQ(verifier_->remembered(), 0u);
}

TEST_F(TokenVerifierTest, NoMoreThanItsBoundIsRemembered) {
  for (size_t i = 0; i <= TokenVerifier::kMaxRemembered; ++i) {
    ASSERT_OK(verifier_->TenantOf(TokenOf(absl::StrCat(i))));
    ASSERT_LE(verifier_->remembered(), TokenVerifier::kMaxRemembered);
  }
  EXPECT_EQ(verifier_->remembered(), 1u);
}

}  // namespace
}  // namespace cipherd::server
