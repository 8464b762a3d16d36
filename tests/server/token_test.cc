// Which tokens are taken, whose they are, and that a refusal says why without showing the token.
#include "server/token.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/programs/temporary_directory.h"
#include "tests/server/token_signer.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using namespace server::testing;  // NOLINT: the test's own vocabulary
using Kind = TokenSigner::Kind;

constexpr char kClaims[] = R"({"iss":"https://idp","aud":"cipherd","sub":"alice","exp":2000})";
constexpr char kHeader[] = R"({"alg":"ES256","kid":"k1","typ":"JWT"})";

class TokenTest : public ::testing::Test {
 protected:
  TokenTest() {
    options_ = {.keys = directory_.path(), .issuer = "https://idp", .audience = "cipherd"};
    Write("k1", p256_);
  }

  void Write(const std::string& kid, const TokenSigner& signer) {
    directory_.Write(kid + ".pem", signer.PublicPem());
  }
  absl::StatusOr<Token> Verify(std::string_view text) {
    return VerifyToken(text, TokenKeys::Read(options_.keys).value(), options_);
  }
  absl::Status Refusal(std::string_view text) { return Verify(text).status(); }
  // A token with these claims in the place of kClaims'.
  absl::StatusOr<Token> VerifyClaims(std::string_view claims) {
    return Verify(p256_.Sign(kHeader, claims));
  }

  const programs::TemporaryDirectory directory_;
  const TokenSigner p256_{Kind::kP256};
  TokenOptions options_;
};

auto IsRefused(const std::string& why) {
  return StatusIs(absl::StatusCode::kUnauthenticated,
                  AllOf(HasSubstr("authorization: "), HasSubstr(why)));
}

TEST_F(TokenTest, ASignedTokenNamesItsTenant) {
  ASSERT_OK_AND_ASSIGN(const Token token, Verify(p256_.Sign(kHeader, kClaims)));
  EXPECT_EQ(token.tenant, "token:https://idp#alice");
  EXPECT_EQ(token.expiry, absl::FromUnixSeconds(2000));
  EXPECT_EQ(token.not_before, absl::InfinitePast());
}

TEST_F(TokenTest, EachKeyTakesTheAlgorithmsOfItsKindOnly) {
  const std::pair<Kind, std::vector<std::string>> kinds[] = {
      {Kind::kRsa2048, {"RS256", "RS384", "RS512"}},
      {Kind::kP256, {"ES256"}},
      {Kind::kP384, {"ES384"}},
      {Kind::kP521, {"ES512"}}};
  for (const auto& [kind, own] : kinds) {
    const TokenSigner signer(kind);
    Write("k2", signer);
    for (const char* algorithm :
         {"RS256", "RS384", "RS512", "ES256", "ES384", "ES512", "HS256", "HS384", "HS512", "PS256",
          "EdDSA", "none", "None", "rs256", "es256", "RS256 ", ""}) {
      SCOPED_TRACE(absl::StrCat(own[0], " key, token of '", algorithm, "'"));
      const bool is_own = std::find(own.begin(), own.end(), algorithm) != own.end();
      const std::string header = absl::StrCat(R"({"kid":"k2","alg":")", algorithm, R"("})");
      const absl::StatusOr<Token> token = Verify(signer.Sign(header, kClaims));
      if (is_own) {
        EXPECT_OK(token);
      } else {
        // Those that the library does not know, it does not read.
        EXPECT_THAT(token, StatusIs(absl::StatusCode::kUnauthenticated));
      }
    }
  }
}

TEST_F(TokenTest, ThePublicKeyIsNoSecretAndNoSignatureIsNone) {
  // The library takes the first of these (HS256 with what it was given as the key).
  for (const Kind kind : {Kind::kP256, Kind::kRsa2048}) {
    const TokenSigner signer(kind);
    Write("k2", signer);
    EXPECT_THAT(
        Refusal(SignWithSecret(R"({"alg":"HS256","kid":"k2"})", kClaims, signer.PublicPem())),
        IsRefused("alg: expected one of the key's own kind"));
  }
  const std::string unsigned_input = SigningInput(R"({"alg":"none","kid":"k1"})", kClaims);
  EXPECT_THAT(Refusal(unsigned_input + ".AAAA"), IsRefused("alg"));
  EXPECT_THAT(Refusal(unsigned_input + "."), IsRefused("three parts"));
  EXPECT_THAT(Refusal(SigningInput(R"({"kid":"k1"})", kClaims) + ".AAAA"), IsRefused(""));
}

TEST_F(TokenTest, TheKeyIsTheOneThatTheTokenNames) {
  const TokenSigner other(Kind::kP256);
  EXPECT_THAT(Refusal(other.Sign(kHeader, kClaims)), IsRefused("signature"));
  EXPECT_THAT(Refusal(other.Sign(R"({"alg":"ES256","kid":"k2"})", kClaims)), IsRefused("kid"));
  // Without a name it can only be the only one.
  EXPECT_OK(Verify(p256_.Sign(R"({"alg":"ES256"})", kClaims)));
  Write("k2", other);
  EXPECT_OK(Verify(other.Sign(R"({"alg":"ES256","kid":"k2"})", kClaims)));
  EXPECT_THAT(Refusal(p256_.Sign(R"({"alg":"ES256"})", kClaims)), IsRefused("kid"));
  for (const char* kid : {"1", "null", R"(["k1"])", R"("../k1")", R"("k1.pem")", R"("")"}) {
    EXPECT_THAT(Refusal(p256_.Sign(absl::StrCat(R"({"alg":"ES256","kid":)", kid, "}"), kClaims)),
                IsRefused("kid"))
        << kid;
  }
  // A lone file is every token's.
  options_.keys = directory_.path() / "k1.pem";
  EXPECT_OK(Verify(p256_.Sign(R"({"alg":"ES256","kid":"any"})", kClaims)));
}

TEST_F(TokenTest, WhatTheHeaderDemandsAndNobodyKnowsIsRefused) {
  EXPECT_THAT(Refusal(p256_.Sign(R"({"alg":"ES256","kid":"k1","crit":["exp"],"exp":1})", kClaims)),
              IsRefused("crit"));
  EXPECT_THAT(Refusal(p256_.Sign(R"({"alg":"ES256","kid":"k1","typ":"JWE"})", kClaims)),
              IsRefused("of type JWT"));
  // RFC 9068, section 2.1: a limit of Debian's libjwt (SECURITY.md).
  EXPECT_THAT(Refusal(p256_.Sign(R"({"alg":"ES256","kid":"k1","typ":"at+jwt"})", kClaims)),
              IsRefused("of type JWT"));
}

TEST_F(TokenTest, EveryClaimIsLookedAt) {
  const std::pair<const char*, const char*> refused[] = {
      {R"({"aud":"cipherd","sub":"alice","exp":2000})", "iss: expected 'https://idp'"},
      {R"({"iss":"https://idp/","aud":"cipherd","sub":"alice","exp":2000})", "iss"},
      {R"({"iss":["https://idp"],"aud":"cipherd","sub":"alice","exp":2000})", "iss"},
      {R"({"iss":"https://idp","sub":"alice","exp":2000})", "aud: expected 'cipherd'"},
      {R"({"iss":"https://idp","aud":"billing","sub":"alice","exp":2000})", "aud"},
      {R"({"iss":"https://idp","aud":["billing",["cipherd"],7],"sub":"alice","exp":2000})", "aud"},
      {R"({"iss":"https://idp","aud":{"cipherd":1},"sub":"alice","exp":2000})", "aud"},
      {R"({"iss":"https://idp","aud":"cipherd","sub":"alice"})", "exp: expected a time, got none"},
      {R"({"iss":"https://idp","aud":"cipherd","sub":"alice","exp":"2000"})", "exp"},
      {R"({"iss":"https://idp","aud":"cipherd","sub":"alice","exp":null})", "exp"},
      {R"({"iss":"https://idp","aud":"cipherd","sub":"alice","exp":2000,"nbf":"1"})", "nbf"},
      {R"({"iss":"https://idp","aud":"cipherd","exp":2000})", "sub"},
      {R"({"iss":"https://idp","aud":"cipherd","sub":"","exp":2000})", "sub"},
      {R"({"iss":"https://idp","aud":"cipherd","sub":17,"exp":2000})", "sub"},
      {R"({"iss":"https://idp","aud":"cipherd","sub":"a\nb","exp":2000})", "sub"},
      {R"({"iss":"https://idp","aud":"cipherd","sub":"ali\u0441e","exp":2000})", "sub"},
      {"[]", "iss"},
      {"{", "of type JWT"},
      {"\xff\xfe", "of type JWT"},
  };
  for (const auto& [claims, why] : refused) {
    EXPECT_THAT(VerifyClaims(claims), IsRefused(why)) << claims;
  }
  const char* const taken[] = {
      R"({"iss":"https://idp","aud":["billing","cipherd"],"sub":"alice","exp":2000})",
      R"({"iss":"https://idp","aud":"cipherd","sub":"alice","exp":2000.5,"nbf":1.25})",
      R"({"iss":"https://idp","aud":"cipherd","sub":"alice","exp":1e300,"more":{"a":[1]}})",
  };
  for (const char* claims : taken) EXPECT_OK(VerifyClaims(claims)) << claims;
}

TEST_F(TokenTest, ANameHasABound) {
  const auto claims_of = [](size_t bytes) {
    return absl::StrCat(R"({"iss":"https://idp","aud":"cipherd","exp":2000,"sub":")",
                        std::string(bytes, 'a'), R"("})");
  };
  EXPECT_OK(VerifyClaims(claims_of(kMaxTenantClaimBytes)));
  EXPECT_THAT(VerifyClaims(claims_of(kMaxTenantClaimBytes + 1)), IsRefused("sub"));
}

TEST_F(TokenTest, AnotherClaimMayNameTheTenant) {
  options_.tenant_claim = "org";
  EXPECT_THAT(VerifyClaims(kClaims), IsRefused("org"));
  ASSERT_OK_AND_ASSIGN(
      const Token token,
      VerifyClaims(
          R"({"iss":"https://idp","aud":"cipherd","sub":"alice","org":"Acme Corp","exp":2000})"));
  EXPECT_EQ(token.tenant, "token:https://idp#Acme Corp");
}

TEST_F(TokenTest, TimesAreThoseOfTheClaimsButForTheLeeway) {
  ASSERT_OK_AND_ASSIGN(
      const Token token,
      VerifyClaims(R"({"iss":"https://idp","aud":"cipherd","sub":"alice","exp":2000,"nbf":1000})"));
  const auto at = [&](int64_t seconds) {
    return token.CheckTime(absl::FromUnixSeconds(seconds), absl::Seconds(30));
  };
  EXPECT_THAT(at(969), IsRefused("nbf: expected until 1970-01-01T00:16:09+00:00, got "
                                 "1970-01-01T00:16:40+00:00"));
  EXPECT_OK(at(970));
  EXPECT_OK(at(2029));
  EXPECT_THAT(at(2030), IsRefused("exp: expected after 1970-01-01T00:33:50+00:00, got "
                                  "1970-01-01T00:33:20+00:00"));
}

TEST_F(TokenTest, WhatIsNoTokenIsRefusedUnread) {
  const std::string good = p256_.Sign(kHeader, kClaims);
  std::vector<std::string> texts = {
      "",
      ".",
      "..",
      "...",
      "a",
      "a.b",
      "a.b.c.d",
      "a..c",
      "a.b.",
      ".b.c",
      good + ".",
      good + "=",
      " " + good,
      good + " ",
      good + "\n",
      good.substr(0, good.rfind('.')),
      std::string(kMaxTokenBytes, '.'),
      std::string(kMaxTokenBytes, 'a'),
      "\xc3\x28.\xff\xff.\xfe",
      std::string("a\0.b.c", 6),
      "a+b.c/d.e",
      std::string(kMaxTokenBytes - 4, 'A') + ".A.A",
      Base64Url(std::string(3000, '[')) + ".e30.AAAA",
      Base64Url(std::string(3000, '{')) + ".e30.AAAA",
  };
  for (const std::string& text : texts) {
    EXPECT_THAT(Refusal(text), StatusIs(absl::StatusCode::kUnauthenticated)) << text;
  }
  EXPECT_THAT(Refusal(std::string(kMaxTokenBytes + 1, 'a')),
              IsRefused("expected a token of at most 8192 bytes, got 8193"));
}

TEST_F(TokenTest, NoByteOfASignedTokenMayChange) {
  const std::string good = p256_.Sign(kHeader, kClaims);
  // The last character has bits that belong to no byte.
  for (size_t i = 0; i + 1 < good.size(); ++i) {
    std::string changed = good;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    EXPECT_FALSE(Verify(changed).ok()) << i;
  }
}

TEST_F(TokenTest, ARefusalShowsNothingOfTheToken) {
  const char* const secrets[] = {"mallory", "billing", "k9", "evil"};
  const std::string claims =
      R"({"iss":"https://evil","aud":"billing","sub":"mallory","exp":1,"nbf":"mallory"})";
  const std::string tokens[] = {
      p256_.Sign(kHeader, claims),
      p256_.Sign(R"({"alg":"ES256","kid":"k9"})", claims),
      p256_.Sign(R"({"alg":"evil","kid":"k1"})", claims),
      p256_.Sign(kHeader, R"({"iss":"https://idp","aud":"billing"})"),
      p256_.Sign(kHeader, R"({"iss":"https://idp","aud":"cipherd","exp":1,"sub":"mallory\n"})"),
      p256_.Sign(kHeader, kClaims) + "mallory",
  };
  for (const std::string& token : tokens) {
    const absl::Status status = Refusal(token);
    EXPECT_FALSE(status.ok());
    for (const char* secret : secrets) {
      EXPECT_THAT(std::string(status.message()), Not(HasSubstr(secret)));
    }
    for (const absl::string_view part : absl::StrSplit(token, '.')) {
      EXPECT_THAT(std::string(status.message()), Not(HasSubstr(std::string(part))));
    }
  }
}

}  // namespace
}  // namespace cipherd::server
