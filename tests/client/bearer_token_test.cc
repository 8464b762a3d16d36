// Where a client's token comes from, and that a file's is the one of now.
#include "client/bearer_token.h"

#include <filesystem>
#include <string>

#include "client/client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/fake_service.h"
#include "tests/programs/temporary_directory.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::client {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class BearerTokenTest : public ::testing::Test {
 protected:
  // Whole or not at all.
  void Put(const std::string& content) {
    std::filesystem::rename(directory_.Write("new", content), file());
  }
  std::string file() const { return directory_.path() / "token"; }
  static absl::StatusOr<std::unique_ptr<BearerToken>> Open(const std::string& token,
                                                           const std::string& file) {
    ClientOptions options;
    options.bearer_token = token;
    options.bearer_token_file = file;
    return BearerToken::Open(options);
  }

  const programs::TemporaryDirectory directory_;
};

TEST_F(BearerTokenTest, IsATextOrTheFirstLineOfAFileOrNone) {
  EXPECT_EQ(Open("", "").value()->Current(), "");
  EXPECT_EQ(Open("a.b.c", "").value()->Current(), "a.b.c");
  for (const char* content : {"a.b.c", "a.b.c\n", " a.b.c\r\nmore\n"}) {
    Put(content);
    EXPECT_EQ(Open("", file()).value()->Current(), "a.b.c") << content;
  }
}

TEST_F(BearerTokenTest, WhatCannotBeOneIsRefusedWithoutBeingShown) {
  EXPECT_THAT(Open("", file()), StatusIs(absl::StatusCode::kNotFound, HasSubstr(file())));
  Put("\nsecret");
  EXPECT_THAT(Open("", file()), StatusIs(absl::StatusCode::kNotFound, HasSubstr(file())));
  EXPECT_THAT(Open("a.b.c", file()), StatusIs(absl::StatusCode::kInvalidArgument));
  // gRPC would end the process at some of these.
  for (const std::string& token :
       {std::string("se cret"), std::string("secret\n"), std::string("secret\xc3\xa9"),
        std::string("secret\0", 7), "secret" + std::string(9000, 'a')}) {
    EXPECT_THAT(Open(token, ""),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr("bearer_token"), Not(HasSubstr("secret")))));
  }
  Put("se cret");
  EXPECT_THAT(Open("", file()), StatusIs(absl::StatusCode::kInvalidArgument,
                                         AllOf(HasSubstr(file()), Not(HasSubstr("secret")))));
}

TEST_F(BearerTokenTest, AFileThatIsNoTokenForAWhileLeavesTheFormer) {
  Put("first");
  ASSERT_OK_AND_ASSIGN(const auto token, Open("", file()));
  Put("not a token");
  EXPECT_EQ(token->Current(), "first");
  std::filesystem::remove(file());
  EXPECT_EQ(token->Current(), "first");
  Put("second");
  EXPECT_EQ(token->Current(), "second");
}

TEST_F(BearerTokenTest, ACallHasTheTokenOfItsTime) {
  FakeService service;
  ClientOptions options = service.ClientOptions();
  options.bearer_token_file = file();
  EXPECT_THAT(Client::Connect(options), StatusIs(absl::StatusCode::kNotFound));
  Put("first");
  ASSERT_OK_AND_ASSIGN(const auto client, Client::Connect(options));
  EXPECT_EQ(service.authorization(), "Bearer first");
  Put("second");
  EXPECT_OK(client->GetServerInfo());
  EXPECT_EQ(service.authorization(), "Bearer second");
}

}  // namespace
}  // namespace cipherd::client
