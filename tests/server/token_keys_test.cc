// Which files are keys of tokens, and what happens when they change.
#include "server/token_keys.h"

#include <sys/stat.h>

#include <filesystem>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/token_key_files.h"
#include "tests/programs/temporary_directory.h"
#include "tests/server/token_signer.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace server::testing;  // NOLINT: the test's own vocabulary
using Kind = TokenSigner::Kind;

class TokenKeysTest : public ::testing::Test {
 protected:
  std::string directory() const { return directory_.path(); }
  // Whole or not at all, as it is to be done.
  void Put(const std::string& name, const std::string& content) {
    std::filesystem::rename(directory_.Write("." + name, content), directory_.path() / name);
  }
  void Remove(const std::string& name) { std::filesystem::remove(directory_.path() / name); }

  const programs::TemporaryDirectory directory_;
  const TokenSigner first_{Kind::kP256}, second_{Kind::kP384};
};

TEST_F(TokenKeysTest, ADirectoryHasAKeyAFile) {
  Put("k1.pem", first_.PublicPem());
  Put("k.2.pem", "# text around it\n" + second_.PublicPem());
  Put("README", "no key");
  Put(".hidden.pem", "no key");
  ASSERT_OK_AND_ASSIGN(const TokenKeys keys, TokenKeys::Read(directory()));
  EXPECT_THAT(keys.names(), ElementsAre("k.2", "k1"));
  ASSERT_NE(keys.Find("k1"), nullptr);
  EXPECT_EQ(keys.Find("k1")->pem, first_.PublicPem());
  EXPECT_EQ(keys.Find("k.2")->pem, second_.PublicPem());
  EXPECT_EQ(keys.Find("k2"), nullptr);
  EXPECT_EQ(keys.Find("README"), nullptr);
  EXPECT_EQ(keys.Find(std::nullopt), nullptr);
}

TEST_F(TokenKeysTest, WhatIsNoKeyIsNamed) {
  const auto refused = [&](const std::string& content, const std::string& why) {
    Put("k1.pem", content);
    for (const std::string& path : {directory(), directory() + "/k1.pem"}) {
      EXPECT_THAT(TokenKeys::Read(path), StatusIs(absl::StatusCode::kInvalidArgument,
                                                  AllOf(HasSubstr("k1.pem"), HasSubstr(why))));
    }
  };
  refused("", "got something else");
  refused("damaged", "got something else");
  refused(first_.PublicPem().substr(0, 60), "got something else");
  refused(first_.PrivatePem(), "got a private key");
  refused(first_.PublicPem() + first_.PrivatePem(), "got a private key");
  refused(first_.PublicPem() + second_.PublicPem(), "got several");
  refused(std::string(TokenKeys::kMaxFileBytes + 1, '\n'), "bytes");
  for (const Kind kind : {Kind::kRsa1024, Kind::kSecp256k1, Kind::kEd25519}) {
    refused(TokenSigner(kind).PublicPem(), "2048 bits");
  }
  Remove("k1.pem");
  EXPECT_THAT(TokenKeys::Read(directory()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr(directory()), HasSubstr("got none"))));
  EXPECT_THAT(TokenKeys::Read("/no/such/file"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("/no/such/file")));
  std::filesystem::create_directory(directory_.path() / "k1.pem");
  EXPECT_THAT(TokenKeys::Read(directory()),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("k1.pem")));
}

TEST_F(TokenKeysTest, KeysAreAddedExchangedAndTakenAway) {
  Put("k1.pem", first_.PublicPem());
  std::vector<bool> read;
  ASSERT_OK_AND_ASSIGN(const auto files, TokenKeyFiles::Open(directory(), [&](bool is_in_force) {
                         read.push_back(is_in_force);
                       }));
  const auto before = files->Current();
  files->Look();
  EXPECT_EQ(files->Current(), before) << "nothing has changed";
  Put("k2.pem", second_.PublicPem());
  files->Look();
  EXPECT_THAT(files->Current()->names(), ElementsAre("k1", "k2"));
  EXPECT_THAT(before->names(), ElementsAre("k1")) << "who verifies goes on with what it has";
  Put("k1.pem", second_.PublicPem());
  files->Look();
  EXPECT_EQ(files->Current()->Find("k1")->pem, second_.PublicPem());
  Remove("k1.pem");
  files->Look();
  EXPECT_THAT(files->Current()->names(), ElementsAre("k2"));
  EXPECT_THAT(read, ElementsAre(true, true, true, true));
}

TEST_F(TokenKeysTest, WhereOneFileIsWrongAllFormerKeysStay) {
  Put("k1.pem", first_.PublicPem());
  bool is_in_force = false;
  ASSERT_OK_AND_ASSIGN(const auto files,
                       TokenKeyFiles::Open(directory(), [&](bool read) { is_in_force = read; }));
  const auto former = files->Current();
  const auto expect_former = [&] {
    files->Look();
    EXPECT_EQ(files->Current(), former);
    EXPECT_FALSE(is_in_force);
  };
  Put("k2.pem", "damaged");
  expect_former();
  // Nor is one taken away while another is wrong.
  Remove("k1.pem");
  expect_former();
  Remove("k2.pem");
  expect_former();
  Put("k2.pem", second_.PublicPem());
  files->Look();
  EXPECT_TRUE(is_in_force);
  EXPECT_THAT(files->Current()->names(), ElementsAre("k2"));
}

// What could not be read for a moment changes nothing of the files.
TEST_F(TokenKeysTest, WhatWasNotTakenIsReadAgainAtEachLook) {
  Put("k1.pem", first_.PublicPem());
  int read_count = 0;
  ASSERT_OK_AND_ASSIGN(const auto files,
                       TokenKeyFiles::Open(directory(), [&](bool) { ++read_count; }));
  Put("k2.pem", "damaged");
  files->Look();
  files->Look();
  EXPECT_EQ(read_count, 3);
  Remove("k2.pem");
  files->Look();
  files->Look();
  EXPECT_EQ(read_count, 4);
}

// Whether it can be read depends on them.
TEST_F(TokenKeysTest, AChangeOfOwnerOrModeIsAChange) {
  Put("k1.pem", first_.PublicPem());
  const std::string file = directory() + "/k1.pem";
  const base::FileState before = base::FileState::Of(file);
  // Until the clock of the file system has moved.
  while (base::FileState::Of(file) == before) ASSERT_EQ(chmod(file.c_str(), 0600), 0);
}

// As Kubernetes mounts them: links through a link that is exchanged.
TEST_F(TokenKeysTest, LinksAreFollowed) {
  namespace fs = std::filesystem;
  const fs::path path = directory_.path();
  directory_.Write("..one/k1.pem", first_.PublicPem());
  directory_.Write("..two/k1.pem", second_.PublicPem());
  fs::create_directory_symlink("..one", path / "..data");
  fs::create_symlink("..data/k1.pem", path / "k1.pem");
  ASSERT_OK_AND_ASSIGN(const auto files, TokenKeyFiles::Open(directory()));
  EXPECT_EQ(files->Current()->Find("k1")->pem, first_.PublicPem());
  fs::create_directory_symlink("..two", path / "..new");
  fs::rename(path / "..new", path / "..data");
  files->Look();
  EXPECT_EQ(files->Current()->Find("k1")->pem, second_.PublicPem());
}

}  // namespace
}  // namespace cipherd::server
