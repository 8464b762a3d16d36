// Key sets on file and in host memory: what moves between them, and what a restart finds.
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "server/engine/failure_reason.h"
#include "server/engine/key_store.h"
#include "tests/server/engine/held_file.h"
#include "tests/server/engine/key_directory.h"
#include "tests/server/engine/test_program.h"
#include "tests/testing/devices.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::engine {
namespace {

namespace fs = std::filesystem;
using ::cipherd::testing::OpenTestDevice;
using ::cipherd::testing::StatusIs;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace engine::testing;  // NOLINT: the test's own vocabulary

constexpr int64_t kSetBytes = 2 * kWordCount * 8;

class KeyTiersTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(device_, OpenTestDevice("cpu"));
    Open(Room(9, 9));
  }
  void TearDown() override { store_.reset(); }

  KeyStore::Options Room(int host_sets, int file_sets) {
    return {.budget_bytes = host_sets * kSetBytes,
            .max_set_bytes = kSetBytes,
            .directory = directory_,
            .file_budget_bytes = file_sets * kSetBytes,
            .sweep_interval = absl::InfiniteDuration()};
  }
  // As after a restart.
  void Open(const KeyStore::Options& options) {
    store_.reset();
    ASSERT_OK_AND_ASSIGN(
        store_, KeyStore::Open(
                    *device_, options,
                    [this](const KeySetInfo& keys) { dropped_.push_back(keys.id); }, clock_));
  }
  std::string Put(int seed, const std::string& tenant = "alice") {
    const std::string id = TrueKeySetId(seed);
    EXPECT_OK(PutTestKeys(*store_, tenant, id, seed));
    return id;
  }
  static std::vector<uint64_t> Words(const StoredKeySet& keys, int index) {
    const value::Tensor& data = std::next(keys.keys.begin(), index)->second.data;
    return {data.data_as<uint64_t>(), data.data_as<uint64_t>() + data.element_count()};
  }
  // Whether the set comes back with the bytes of `seed`.
  void ExpectIntact(int seed, const std::string& tenant = "alice") {
    ASSERT_OK_AND_ASSIGN(const KeySetRef keys, AwaitKeys(*store_, tenant, TrueKeySetId(seed)));
    for (int index : {0, 1}) EXPECT_EQ(Words(*keys, index), KeyWords(seed, index));
  }
  std::vector<fs::path> Files(const std::string& ending = ".keys") const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(directory_)) {
      if (entry.path().string().ends_with(ending)) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    return files;
  }
  // Ends the store, so that what its threads had to do is done.
  void Close() { store_.reset(); }

  const KeyDirectory key_directory_;
  const std::string& directory_ = key_directory_.path();
  std::unique_ptr<runtime::Device> device_;
  base::FakeClock clock_{absl::FromUnixSeconds(1'700'000'000)};
  std::vector<std::string> dropped_;
  std::unique_ptr<KeyStore> store_;
};

TEST_F(KeyTiersTest, ASetSurvivesARestartForItsTenantOnly) {
  const std::string id = Put(1);
  Put(2, "bob");
  Open(Room(9, 9));
  EXPECT_EQ(store_->set_count(), 2u);
  EXPECT_EQ(store_->used_bytes(), 0) << "nothing is read before it is asked for";
  EXPECT_EQ(store_->tenant_bytes("alice"), kSetBytes);
  ExpectIntact(1);
  ExpectIntact(2, "bob");
  EXPECT_THAT(store_->Find("bob", id), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(store_->used_bytes(), 2 * kSetBytes);
}

TEST_F(KeyTiersTest, OnlyTheOwnerOfTheProcessReadsTheFiles) {
  Put(1);
  for (const auto& entry : fs::recursive_directory_iterator(directory_)) {
    struct stat status = {};
    ASSERT_EQ(stat(entry.path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, entry.is_directory() ? 0700u : 0600u) << entry.path();
  }
  Close();
  fs::permissions(directory_, fs::perms::owner_all | fs::perms::group_read);
  EXPECT_THAT(KeyStore::Open(*device_, Room(9, 9)),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("0740")));
}

TEST_F(KeyTiersTest, ADirectoryHasOneOwner) {
  EXPECT_THAT(KeyStore::Open(*device_, Room(9, 9)),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(directory_)));
}

TEST_F(KeyTiersTest, ASetThatLeftHostMemoryIsReadBack) {
  Open(Room(2, 9));
  for (int seed : {1, 2, 3}) Put(seed);
  EXPECT_EQ(store_->used_bytes(), 2 * kSetBytes);
  EXPECT_EQ(store_->set_count(), 3u);
  EXPECT_THAT(dropped_, IsEmpty());
  for (int seed : {1, 2, 3, 1, 2, 3}) ExpectIntact(seed);
  EXPECT_LE(store_->used_bytes(), 2 * kSetBytes);
  EXPECT_EQ(store_->stats().file_loads, 6u);
}

TEST_F(KeyTiersTest, AFileIsReadOnceHoweverManyWait) {
  const std::string id = Put(1);
  Open(Room(9, 9));
  HeldFile held(Files().at(0));
  std::vector<std::shared_ptr<KeySetTicket>> tickets;
  for (int i = 0; i < 20; ++i) tickets.push_back(store_->Acquire("alice", id));
  std::atomic<int> served = 0;
  for (const auto& ticket : tickets) {
    EXPECT_FALSE(ticket->is_resolved());
    ticket->Await([&](const absl::StatusOr<KeySetRef>& keys) { served += keys.ok(); });
  }
  held.Release();
  ExpectIntact(1);
  EXPECT_EQ(store_->stats().file_loads, 1u);
  store_->Stop();
  EXPECT_EQ(served, 20);
}

TEST_F(KeyTiersTest, HostMemoryInUseMakesALoadWaitForAnotherTry) {
  Open(Room(1, 9));
  Put(1);
  Put(2);
  ASSERT_OK_AND_ASSIGN(KeySetRef in_use, AwaitKeys(*store_, "alice", TrueKeySetId(1)));
  const absl::Status refused = AwaitKeys(*store_, "alice", TrueKeySetId(2)).status();
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(ReasonOf(refused), FailureReason::kOverloaded);
  in_use.reset();
  ExpectIntact(2);
}

TEST_F(KeyTiersTest, ADroppedSetHasNoFile) {
  const std::string id = Put(1);
  Put(2);
  ASSERT_OK(DropTestKeys(*store_, "alice", id));
  EXPECT_THAT(store_->Find("alice", id), StatusIs(absl::StatusCode::kNotFound));
  // Once more, behind the removal.
  Put(1);
  ASSERT_OK(DropTestKeys(*store_, "alice", id));
  Close();
  EXPECT_EQ(Files().size(), 1u);
  Open(Room(9, 9));
  EXPECT_THAT(store_->Find("alice", id), StatusIs(absl::StatusCode::kNotFound));
  ExpectIntact(2);
}

TEST_F(KeyTiersTest, ADropIsAcknowledgedOnceTheFileIsGone) {
  const std::string id = Put(1);
  std::atomic<bool> had_file = true;
  absl::Notification dropped;
  store_->Drop("alice", id, [&](const absl::Status& status) {
    EXPECT_OK(status);
    had_file = !Files().empty();
    dropped.Notify();
  });
  dropped.WaitForNotification();
  EXPECT_FALSE(had_file) << "a crash now would bring the set back";
  EXPECT_THAT(DropTestKeys(*store_, "alice", id), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(KeyTiersTest, ADropThatCannotRemoveTheFileLeavesTheSet) {
  const std::string id = Put(1);
  // What unlink does not remove, whoever asks.
  const fs::path file = Files().at(0);
  const fs::path aside = directory_ + "/aside";
  fs::rename(file, aside);
  fs::create_directory(file);
  const absl::Status refused = DropTestKeys(*store_, "alice", id);
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(ReasonOf(refused), FailureReason::kUnavailable);
  fs::remove(file);
  fs::rename(aside, file);
  ExpectIntact(1);
  EXPECT_OK(DropTestKeys(*store_, "alice", id));
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(KeyTiersTest, ADropByOneTenantLeavesTheEqualSetOfAnother) {
  const std::string id = Put(1);
  Put(1, "bob");
  EXPECT_EQ(Files().size(), 2u);
  ASSERT_OK(DropTestKeys(*store_, "bob", id));
  Open(Room(9, 9));
  EXPECT_THAT(store_->Find("bob", id), StatusIs(absl::StatusCode::kNotFound));
  ExpectIntact(1);
}

TEST_F(KeyTiersTest, WhatWasUsedLastStaysAtTheNextStart) {
  // Used in neither the order of their ids nor that of their upload.
  std::vector<int> seeds = {1, 2, 3, 4, 5, 6};
  for (int seed : seeds) Put(seed);
  std::vector<int> uses = {4, 1, 6, 3, 5, 2};
  for (int seed : uses) {
    clock_.Advance(absl::Minutes(1));
    ExpectIntact(seed);
  }
  for (size_t kept = 5; kept > 0; --kept) {
    uses.erase(uses.begin());
    Open(Room(9, static_cast<int>(kept)));
    ASSERT_EQ(store_->set_count(), kept);
    Close();
    std::vector<std::string> expected, found;
    for (int seed : uses) expected.push_back(TrueKeySetId(seed));
    for (const fs::path& file : Files()) found.push_back(file.stem());
    EXPECT_THAT(found, ::testing::UnorderedElementsAreArray(expected));
  }
}

TEST_F(KeyTiersTest, TheLeastRecentlyUsedFileMakesRoom) {
  Open(Room(9, 2));
  Put(1);
  Put(2);
  ExpectIntact(1);
  Put(3);
  EXPECT_THAT(dropped_, ElementsAre(TrueKeySetId(2)));
  EXPECT_EQ(store_->stats().file_bytes, 2 * kSetBytes);
  Close();
  EXPECT_EQ(Files().size(), 2u);
  // A smaller budget at the next start is kept, too; what was used last stays.
  Open(Room(9, 1));
  EXPECT_EQ(store_->set_count(), 1u);
  EXPECT_EQ(Files().size(), 1u);
}

TEST_F(KeyTiersTest, FilesInUseAreNotReplaced) {
  Open(Room(9, 1));
  ASSERT_OK_AND_ASSIGN(KeySetRef in_use, PutTestKeys(*store_, "alice", TrueKeySetId(1), 1));
  const absl::Status refused = PutTestKeys(*store_, "alice", TrueKeySetId(2), 2).status();
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(ReasonOf(refused), FailureReason::kOverloaded);
  EXPECT_EQ(store_->used_bytes(), kSetBytes) << "the upload gave its memory back";
  EXPECT_EQ(store_->tenant_bytes("alice"), kSetBytes);
  in_use.reset();
  EXPECT_OK(PutTestKeys(*store_, "alice", TrueKeySetId(2), 2));
}

TEST_F(KeyTiersTest, WhatWasHalfWrittenIsGoneAtTheNextOpen) {
  Put(1);
  const fs::path whole = Files().at(0);
  Close();
  // As a crash before the rename leaves it, and a disk that lost the end of a file.
  const fs::path partial = whole.string() + ".0badcafe.tmp";
  fs::copy_file(whole, partial);
  fs::resize_file(partial, fs::file_size(partial) / 2);
  const fs::path cut = whole.parent_path() / (std::string(64, 'a') + ".keys");
  fs::copy_file(whole, cut);
  fs::resize_file(cut, fs::file_size(cut) - 1);
  Open(Room(9, 9));
  EXPECT_EQ(store_->set_count(), 1u);
  EXPECT_FALSE(fs::exists(partial));
  EXPECT_FALSE(fs::exists(cut));
  ExpectIntact(1);
}

TEST_F(KeyTiersTest, EveryCutOfAFileIsRefused) {
  Put(1);
  const fs::path path = Files().at(0);
  Close();
  std::ifstream file(path, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(file), {}};
  for (size_t size = 0; size < whole.size(); size += 13) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, size);
    Open(Room(9, 9));
    EXPECT_EQ(store_->set_count(), 0u) << size;
    Close();
  }
  std::ofstream(path, std::ios::binary) << whole;
  Open(Room(9, 9));
  ExpectIntact(1);
}

TEST_F(KeyTiersTest, ABitThatFlippedOnDiskMakesTheSetUnknown) {
  Put(1);
  const fs::path path = Files().at(0);
  Close();
  std::ifstream file(path, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(file), {}};
  for (size_t at = 5; at < whole.size(); at += 101) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 1);
    std::ofstream(path, std::ios::binary) << flipped;
    Open(Room(9, 9));
    const absl::Status status = AwaitKeys(*store_, "alice", TrueKeySetId(1)).status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound)) << at;
    EXPECT_EQ(ReasonOf(status), FailureReason::kUnknownKeySet);
    EXPECT_EQ(store_->used_bytes(), 0);
    EXPECT_EQ(store_->tenant_bytes("alice"), 0);
    Close();
    EXPECT_FALSE(fs::exists(path)) << at;
  }
}

TEST_F(KeyTiersTest, AFileBelongsToTheTenantThatItsPlaceNames) {
  Put(1);
  Put(2, "bob");
  std::vector<fs::path> files = Files();
  Close();
  // Bob's file in Alice's place is nobody's.
  const fs::path moved = files.at(0).parent_path() / files.at(1).filename();
  fs::copy_file(files.at(1), moved);
  Open(Room(9, 9));
  EXPECT_EQ(store_->set_count(), 2u);
  EXPECT_FALSE(fs::exists(moved));
}

TEST_F(KeyTiersTest, UsesAndTimesToLiveAreRememberedAcrossRestarts) {
  KeyStore::Options options = Room(9, 9);
  options.time_to_live = absl::Hours(10);
  Open(options);
  Put(1);
  Put(2);
  clock_.Advance(absl::Hours(6));
  ExpectIntact(1);
  Open(options);
  clock_.Advance(absl::Hours(5));
  store_->Sweep();
  EXPECT_THAT(dropped_, ElementsAre(TrueKeySetId(2)));
  Close();
  EXPECT_EQ(Files().size(), 1u);
}

TEST_F(KeyTiersTest, AnUploadOfASetOnFileFillsHostMemory) {
  Put(1);
  Open(Room(9, 9));
  ASSERT_EQ(store_->used_bytes(), 0);
  Put(1);
  EXPECT_EQ(store_->used_bytes(), kSetBytes);
  EXPECT_EQ(store_->tenant_bytes("alice"), kSetBytes);
  EXPECT_EQ(store_->stats().file_loads, 0u);
  ExpectIntact(1);
}

TEST_F(KeyTiersTest, ADropEndsTheWaitAndTheReadUnderWayComesToNothing) {
  const std::string id = Put(1);
  Open(Room(9, 9));
  HeldFile held(Files().at(0));
  const auto ticket = store_->Acquire("alice", id);
  held.AwaitReader();
  ASSERT_OK(DropTestKeys(*store_, "alice", id));
  ASSERT_TRUE(ticket->is_resolved());
  ticket->Await([](const absl::StatusOr<KeySetRef>& keys) {
    EXPECT_EQ(ReasonOf(keys.status()), FailureReason::kUnknownKeySet);
  });
  // Uploaded again while the old file is still being read.
  ASSERT_OK_AND_ASSIGN(const KeySetRef again, PutTestKeys(*store_, "alice", id, 1));
  held.Release();
  store_->Stop();
  ASSERT_OK_AND_ASSIGN(const KeySetRef found, AwaitKeys(*store_, "alice", id));
  EXPECT_EQ(found, again);
  EXPECT_EQ(store_->used_bytes(), kSetBytes);
}

TEST_F(KeyTiersTest, ASetOnItsWayToHostMemoryIsInUse) {
  KeyStore::Options options = Room(9, 1);
  options.tenant_budget_bytes = kSetBytes;
  options.time_to_live = absl::Hours(1);
  Open(options);
  const std::string id = Put(1);
  Open(options);
  HeldFile held(Files().at(0));
  const auto ticket = store_->Acquire("alice", id);
  // Neither its tenant, nor others' files, nor time take it away.
  EXPECT_EQ(ReasonOf(store_->Reserve("alice", 1).status()), FailureReason::kOverloaded);
  EXPECT_EQ(ReasonOf(PutTestKeys(*store_, "bob", TrueKeySetId(2), 2).status()),
            FailureReason::kOverloaded);
  clock_.Advance(absl::Hours(2));
  store_->Sweep();
  EXPECT_THAT(dropped_, IsEmpty());
  held.Release();
  ExpectIntact(1);
}

TEST_F(KeyTiersTest, ASetThatCannotBeWrittenIsUnknownAndHoldsNothing) {
  ASSERT_OK(DropTestKeys(*store_, "alice", Put(1)));
  // A file where the tenant's directory was.
  fs::path tenant;
  for (const auto& entry : fs::directory_iterator(directory_)) {
    if (entry.is_directory()) tenant = entry.path();
  }
  fs::remove(tenant);
  std::ofstream(tenant) << "in the way";
  const absl::Status refused = PutTestKeys(*store_, "alice", TrueKeySetId(1), 1).status();
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(ReasonOf(refused), FailureReason::kOverloaded);
  EXPECT_THAT(store_->Find("alice", TrueKeySetId(1)), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(store_->used_bytes(), 0);
  EXPECT_EQ(store_->tenant_bytes("alice"), 0);
  EXPECT_EQ(store_->stats().file_bytes, 0);
  fs::remove(tenant);
  Put(1);
  ExpectIntact(1);
}

TEST_F(KeyTiersTest, WhoWaitsForASetThatIsDroppedHearsOfIt) {
  const std::string id = Put(1);
  Open(Room(9, 9));
  // Whichever comes first, the ticket has one result, and the wait ends.
  for (int i = 0; i < 50; ++i) {
    auto ticket = store_->Acquire("alice", id);
    ASSERT_OK(DropTestKeys(*store_, "alice", id));
    absl::Status status;
    absl::Notification resolved;
    ticket->Await([&](const absl::StatusOr<KeySetRef>& keys) {
      status = keys.status();
      resolved.Notify();
    });
    resolved.WaitForNotification();
    if (!status.ok()) {
      EXPECT_EQ(ReasonOf(status), FailureReason::kUnknownKeySet);
    }
    // It may have the set, which the store outlives.
    ticket.reset();
    Put(1);
    Open(Room(9, 9));
  }
}

}  // namespace
}  // namespace cipherd::engine
