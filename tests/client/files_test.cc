// Files of cipherctl: atomic, private where secret, refused where damaged.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "client/files/file_reader.h"
#include "client/files/file_writer.h"
#include "client/files/secret_key_file.h"
#include "core/base/atomic_file.h"
#include "core/base/status_macros.h"
#include "core/ckks/context.h"
#include "core/secret/random.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::client {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

constexpr auto kInsecure = ckks::SecurityPolicy::kAllowInsecure;

class FilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "cipherd_files_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string Path(const std::string& name) const { return directory_ + "/" + name; }
  std::string Content(const std::string& path) const {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  void Overwrite(const std::string& path, const std::string& content) const {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << content;
  }
  int FileCount() const {
    return static_cast<int>(std::distance(std::filesystem::directory_iterator(directory_), {}));
  }
  static mode_t ModeOf(const std::string& path) {
    struct stat state = {};
    EXPECT_EQ(stat(path.c_str(), &state), 0) << path;
    return state.st_mode & 07777;
  }

  static std::shared_ptr<const ckks::Context> SmallContext() {
    auto parameters =
        ckks::MakeContextParameters({.log_n = 5, .max_depth = 1, .p_prime_count = 2}, kInsecure);
    EXPECT_OK(parameters);
    auto context = ckks::Context::Create(*parameters, kInsecure);
    EXPECT_OK(context);
    return *context;
  }
  static secret::SecretKey SmallKey() {
    secret::Random random = secret::Random::FromSeedForTesting(1);
    return secret::SecretKey::Generate(SmallContext(), random);
  }

  std::string directory_;
};

std::vector<uint8_t> Bytes(const std::string& text) { return {text.begin(), text.end()}; }

TEST_F(FilesTest, NothingAppearsBeforeCommitAndNothingStaysWithoutIt) {
  {
    ASSERT_OK_AND_ASSIGN(base::AtomicFile file, base::AtomicFile::Create(Path("a"), 0644));
    ASSERT_OK(file.Write(Bytes("half")));
    EXPECT_FALSE(std::filesystem::exists(Path("a")));
  }
  EXPECT_EQ(FileCount(), 0);
}

TEST_F(FilesTest, CommitReplacesOrKeepsAsAsked) {
  for (const char* text : {"first", "second"}) {
    ASSERT_OK_AND_ASSIGN(base::AtomicFile file, base::AtomicFile::Create(Path("a"), 0644));
    ASSERT_OK(file.Write(Bytes(text)));
    ASSERT_OK(std::move(file).Commit(base::AtomicFile::Existing::kReplace));
    EXPECT_EQ(Content(Path("a")), text);
  }
  {
    ASSERT_OK_AND_ASSIGN(base::AtomicFile file, base::AtomicFile::Create(Path("a"), 0644));
    ASSERT_OK(file.Write(Bytes("third")));
    EXPECT_THAT(std::move(file).Commit(base::AtomicFile::Existing::kKeep),
                StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr(Path("a"))));
  }
  EXPECT_EQ(Content(Path("a")), "second");
  EXPECT_EQ(FileCount(), 1);
}

TEST_F(FilesTest, ModeIsThatAskedForWhateverTheUmask) {
  const mode_t previous = umask(0);
  ASSERT_OK_AND_ASSIGN(base::AtomicFile loose, base::AtomicFile::Create(Path("secret"), 0600));
  umask(0777);
  ASSERT_OK_AND_ASSIGN(base::AtomicFile tight, base::AtomicFile::Create(Path("public"), 0644));
  umask(previous);
  for (const auto& entry : std::filesystem::directory_iterator(directory_)) {
    const std::string path = entry.path().string();
    EXPECT_EQ(ModeOf(path), path.find("secret") != std::string::npos ? 0600 : 0644)
        << "the unfinished file " << path;
  }
  ASSERT_OK(std::move(loose).Commit(base::AtomicFile::Existing::kReplace));
  ASSERT_OK(std::move(tight).Commit(base::AtomicFile::Existing::kReplace));
  EXPECT_EQ(ModeOf(Path("secret")), 0600);
  EXPECT_EQ(ModeOf(Path("public")), 0644);
}

class PayloadFileTest : public FilesTest {
 protected:
  void WriteExample() {
    files::FileHeader header;
    header.mutable_values()->set_program("p");
    ASSERT_OK_AND_ASSIGN(FileWriter file, FileWriter::Create(Path("v"), 0644, header));
    ASSERT_OK(file.WriteBytes(Bytes("payload")));
    ASSERT_OK(std::move(file).Commit(base::AtomicFile::Existing::kReplace));
  }
  absl::Status ReadExample() {
    CIPHERD_ASSIGN_OR_RETURN(FileReader file,
                             FileReader::Open(Path("v"), files::FileHeader::kValues));
    std::vector<uint8_t> payload(7);
    CIPHERD_RETURN_IF_ERROR(file.ReadBytes(payload));
    EXPECT_EQ(file.header().values().program(), "p");
    return file.Finish();
  }
};

TEST_F(PayloadFileTest, WhatWasWrittenIsRead) {
  WriteExample();
  EXPECT_OK(ReadExample());
}

TEST_F(PayloadFileTest, BytesInMemoryAreThoseOfTheFile) {
  WriteExample();
  files::FileHeader header;
  header.mutable_values()->set_program("p");
  ASSERT_OK_AND_ASSIGN(FileWriter file, FileWriter::InMemory(header));
  ASSERT_OK(file.WriteBytes(Bytes("payload")));
  EXPECT_EQ(std::move(file).TakeBytes(), Content(Path("v")));
}

TEST_F(PayloadFileTest, BytesInMemoryAreCheckedAsAFileIs) {
  WriteExample();
  const std::vector<uint8_t> content = Bytes(Content(Path("v")));
  const auto read = [](std::span<const uint8_t> bytes) -> absl::Status {
    CIPHERD_ASSIGN_OR_RETURN(FileReader file,
                             FileReader::FromBytes(bytes, "here", files::FileHeader::kValues));
    std::vector<uint8_t> payload(7);
    CIPHERD_RETURN_IF_ERROR(file.ReadBytes(payload));
    return file.Finish();
  };
  EXPECT_OK(read(content));
  for (size_t i = 0; i < content.size(); ++i) {
    std::vector<uint8_t> damaged = content;
    damaged[i] ^= 1;
    EXPECT_THAT(read(damaged), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'here'")))
        << "byte " << i;
    EXPECT_THAT(read(std::span(content).first(i)),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'here'")))
        << "the first " << i << " bytes";
  }
}

TEST_F(PayloadFileTest, EveryFlippedBitIsFound) {
  WriteExample();
  const std::string content = Content(Path("v"));
  for (size_t i = 0; i < content.size(); ++i) {
    std::string damaged = content;
    damaged[i] ^= 1;
    Overwrite(Path("v"), damaged);
    absl::Status status;
    // A flipped bit in the program's name shows in the hash only.
    {
      auto file = FileReader::Open(Path("v"), files::FileHeader::kValues);
      status = file.status();
      std::vector<uint8_t> payload(7);
      if (status.ok()) status = file->ReadBytes(payload);
      if (status.ok()) status = file->Finish();
    }
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(Path("v"))))
        << "byte " << i;
  }
}

TEST_F(PayloadFileTest, EveryTruncationIsFound) {
  WriteExample();
  const std::string content = Content(Path("v"));
  for (size_t size = 0; size < content.size(); ++size) {
    Overwrite(Path("v"), content.substr(0, size));
    auto file = FileReader::Open(Path("v"), files::FileHeader::kValues);
    absl::Status status = file.status();
    std::vector<uint8_t> payload(7);
    if (status.ok()) status = file->ReadBytes(payload);
    if (status.ok()) status = file->Finish();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument)) << size << " bytes";
  }
}

TEST_F(PayloadFileTest, OtherContentAndOtherVersionsAreNamed) {
  WriteExample();
  EXPECT_THAT(FileReader::Open(Path("v"), files::FileHeader::kKeySet).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("expected evaluation keys, got encrypted")));
  std::string content = Content(Path("v"));
  content[7] = 2;
  Overwrite(Path("v"), content);
  EXPECT_THAT(
      FileReader::Open(Path("v"), files::FileHeader::kValues).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("version: expected 1, got 2")));
  Overwrite(Path("v"), std::string(100, 'x'));
  EXPECT_THAT(
      FileReader::Open(Path("v"), files::FileHeader::kValues).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is not a file of cipherctl")));
  EXPECT_THAT(FileReader::Open(Path("none"), files::FileHeader::kValues).status(),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(FilesTest, SecretKeySurvivesTheRoundTripInAPrivateFile) {
  const secret::SecretKey key = SmallKey();
  ASSERT_OK(WriteSecretKeyFile(Path("secret.key"), key));
  EXPECT_EQ(ModeOf(Path("secret.key")), 0600);
  ASSERT_OK_AND_ASSIGN(const secret::SecretKey back,
                       ReadSecretKeyFile(Path("secret.key"), kInsecure));
  EXPECT_THAT(back.coefficients(), ElementsAreArray(key.coefficients()));
  EXPECT_EQ(back.context()->id(), key.context()->id());
}

TEST_F(FilesTest, SecretKeyIsNeverOverwritten) {
  ASSERT_OK(WriteSecretKeyFile(Path("secret.key"), SmallKey()));
  const std::string before = Content(Path("secret.key"));
  secret::Random random = secret::Random::FromSeedForTesting(2);
  const auto other = secret::SecretKey::Generate(SmallContext(), random);
  EXPECT_THAT(WriteSecretKeyFile(Path("secret.key"), other),
              StatusIs(absl::StatusCode::kAlreadyExists));
  EXPECT_EQ(Content(Path("secret.key")), before);
  EXPECT_EQ(FileCount(), 1) << "a copy of a secret key was left behind";
}

TEST_F(FilesTest, SecretKeyThatOthersMayReadIsRefused) {
  ASSERT_OK(WriteSecretKeyFile(Path("secret.key"), SmallKey()));
  for (mode_t mode : {0640, 0604, 0660, 0601, 0610}) {
    ASSERT_EQ(chmod(Path("secret.key").c_str(), mode), 0);
    EXPECT_THAT(ReadSecretKeyFile(Path("secret.key"), kInsecure).status(),
                StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("expected mode 0600")))
        << std::oct << mode;
  }
  for (mode_t mode : {0600, 0400}) {
    ASSERT_EQ(chmod(Path("secret.key").c_str(), mode), 0);
    EXPECT_OK(ReadSecretKeyFile(Path("secret.key"), kInsecure).status());
  }
}

TEST_F(FilesTest, SecretKeyOfAnInsecureContextNeedsLeave) {
  ASSERT_OK(WriteSecretKeyFile(Path("secret.key"), SmallKey()));
  EXPECT_THAT(
      ReadSecretKeyFile(Path("secret.key"), ckks::SecurityPolicy::k128BitClassical).status(),
      StatusIs(absl::StatusCode::kInvalidArgument));
}

}  // namespace
}  // namespace cipherd::client
