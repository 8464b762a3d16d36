// Daemons on one key directory: what one stores all find, and what each may take away.
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "core/base/atomic_file.h"
#include "gtest/gtest.h"
#include "server/engine/failure_reason.h"
#include "server/engine/key_store.h"
#include "tests/server/engine/key_directory.h"
#include "tests/server/engine/test_program.h"
#include "tests/testing/devices.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::engine {
namespace {

namespace fs = std::filesystem;
using ::cipherd::testing::OpenTestDevice;
using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using namespace engine::testing;  // NOLINT: the test's own vocabulary

constexpr int64_t kSetBytes = 2 * kWordCount * 8;

class SharedKeysTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(device_, OpenTestDevice("cpu"));
    first_ = Open(Room(9));
    second_ = Open(Room(9));
  }
  void TearDown() override {
    first_.reset();
    second_.reset();
  }

  KeyStore::Options Room(int file_sets) {
    return {.budget_bytes = 9 * kSetBytes,
            .max_set_bytes = kSetBytes,
            .directory = directory_,
            .is_directory_shared = true,
            .file_budget_bytes = file_sets * kSetBytes,
            .sweep_interval = absl::InfiniteDuration()};
  }
  std::unique_ptr<KeyStore> Open(const KeyStore::Options& options) {
    absl::StatusOr<std::unique_ptr<KeyStore>> store =
        KeyStore::Open(*device_, options, nullptr, clock_);
    EXPECT_OK(store.status());
    return *std::move(store);
  }
  static void Put(KeyStore& store, int seed, const std::string& tenant = "alice") {
    EXPECT_OK(PutTestKeys(store, tenant, TrueKeySetId(seed), seed));
  }
  static void ExpectIntact(KeyStore& store, int seed, const std::string& tenant = "alice") {
    ASSERT_OK_AND_ASSIGN(const KeySetRef keys, AwaitKeys(store, tenant, TrueKeySetId(seed)));
    for (int index : {0, 1}) {
      const value::Tensor& data = std::next(keys->keys.begin(), index)->second.data;
      EXPECT_EQ(std::vector<uint64_t>(data.data_as<uint64_t>(),
                                      data.data_as<uint64_t>() + data.element_count()),
                KeyWords(seed, index));
    }
  }
  static void ExpectUnknown(KeyStore& store, int seed, const std::string& tenant = "alice") {
    const absl::Status status = AwaitKeys(store, tenant, TrueKeySetId(seed)).status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound));
    EXPECT_EQ(ReasonOf(status), FailureReason::kUnknownKeySet);
  }
  std::vector<fs::path> Files(const std::string& ending = ".keys") const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::recursive_directory_iterator(directory_)) {
      if (entry.path().string().ends_with(ending)) files.push_back(entry.path());
    }
    return files;
  }
  // What the store does by itself, and what it has posted to its thread by then.
  static void SweepToTheEnd(KeyStore& store) {
    store.Sweep();
    // Behind everything on the thread that writes.
    DropTestKeys(store, "nobody", TestKeySetId(1)).IgnoreError();
  }

  const KeyDirectory key_directory_;
  const std::string& directory_ = key_directory_.path();
  std::unique_ptr<runtime::Device> device_;
  base::FakeClock clock_{absl::FromUnixSeconds(1'700'000'000)};
  std::unique_ptr<KeyStore> first_, second_;
};

TEST_F(SharedKeysTest, WhatOneStoresTheOtherFindsAtOnceForItsTenantOnly) {
  Put(*first_, 1);
  ExpectUnknown(*second_, 1, "bob");
  ExpectUnknown(*second_, 2);
  ExpectIntact(*second_, 1);
  EXPECT_EQ(second_->stats().file_loads, 1u);
  EXPECT_EQ(second_->tenant_bytes("alice"), kSetBytes);
  EXPECT_EQ(second_->tenant_bytes("bob"), 0);
}

TEST_F(SharedKeysTest, ASetIsReadOnceHoweverManyLookForIt) {
  Put(*first_, 1);
  std::atomic<int> served = 0;
  for (int i = 0; i < 20; ++i) {
    second_->Acquire("alice", TrueKeySetId(1))->Await([&](const absl::StatusOr<KeySetRef>& keys) {
      served += keys.ok();
    });
  }
  ExpectIntact(*second_, 1);
  EXPECT_EQ(second_->stats().file_loads, 1u);
  second_->Stop();
  EXPECT_EQ(served, 20);
}

TEST_F(SharedKeysTest, AnIdThatIsNoneNamesNoFile) {
  Put(*first_, 1);
  const fs::path file = Files().at(0);
  const std::string aside =
      std::string("../") + file.parent_path().filename().string() + "/" + file.stem().string();
  EXPECT_THAT(AwaitKeys(*second_, "bob", aside), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(AwaitKeys(*second_, "bob", ""), StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(SharedKeysTest, OneThatSharesAndOneThatDoesNotExcludeEachOther) {
  KeyStore::Options alone = Room(9);
  alone.is_directory_shared = false;
  EXPECT_THAT(KeyStore::Open(*device_, alone),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(directory_)));
  first_.reset();
  second_.reset();
  first_ = Open(alone);
  EXPECT_THAT(KeyStore::Open(*device_, Room(9)),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(directory_)));
}

TEST_F(SharedKeysTest, AStartLeavesWhatAnotherIsWritingAndRemovesWhatIsLeft) {
  Put(*first_, 1);
  const std::string path = Files().at(0);
  ASSERT_OK_AND_ASSIGN(base::AtomicFile upload, base::AtomicFile::Create(path, 0600));
  std::ofstream(path + ".0badcafe.tmp") << "of one that was killed";
  ASSERT_EQ(Files(".tmp").size(), 2u);
  second_ = Open(Room(9));
  EXPECT_EQ(Files(".tmp").size(), 1u);
  EXPECT_OK(std::move(upload).Commit(base::AtomicFile::Existing::kReplace));
}

TEST_F(SharedKeysTest, ADropElsewhereTakesEffectAtTheNextSweep) {
  Put(*first_, 1);
  Put(*first_, 2);
  ExpectIntact(*second_, 1);
  ExpectIntact(*second_, 2);
  ASSERT_OK(DropTestKeys(*first_, "alice", TrueKeySetId(1)));
  second_->Sweep();
  ExpectUnknown(*second_, 1);
  ExpectIntact(*second_, 2);
  EXPECT_EQ(second_->tenant_bytes("alice"), kSetBytes);
  EXPECT_EQ(second_->stats().file_bytes, kSetBytes);
}

TEST_F(SharedKeysTest, ATenantDropsASetThroughADaemonThatDoesNotKnowIt) {
  Put(*first_, 1);
  Put(*first_, 1, "bob");
  EXPECT_OK(DropTestKeys(*second_, "alice", TrueKeySetId(1)));
  EXPECT_EQ(Files().size(), 1u);
  EXPECT_THAT(DropTestKeys(*second_, "alice", TrueKeySetId(1)),
              StatusIs(absl::StatusCode::kNotFound));
  ExpectIntact(*second_, 1, "bob");
}

TEST_F(SharedKeysTest, AnUploadIsOnFileAlsoWhereTheSetWasDroppedElsewhere) {
  Put(*first_, 1);
  ExpectIntact(*second_, 1);
  ASSERT_OK(DropTestKeys(*first_, "alice", TrueKeySetId(1)));
  // It knows the set still, and must not say that it has it.
  Put(*second_, 1);
  EXPECT_EQ(Files().size(), 1u);
  second_->Sweep();
  ExpectIntact(*second_, 1);
  ExpectIntact(*first_, 1);
}

TEST_F(SharedKeysTest, ASetThatOthersUseDoesNotEnd) {
  KeyStore::Options options = Room(9);
  options.time_to_live = absl::Hours(10);
  first_ = Open(options);
  Put(*first_, 1);
  Put(*first_, 2);
  clock_.Advance(absl::Hours(6));
  ExpectIntact(*second_, 1);
  clock_.Advance(absl::Hours(5));
  SweepToTheEnd(*first_);
  EXPECT_EQ(first_->stats().expirations, 1u);
  EXPECT_EQ(Files().size(), 1u);
  ExpectIntact(*first_, 1);
  ExpectUnknown(*first_, 2);
}

TEST_F(SharedKeysTest, AFileThatOthersHaveUsedSinceMakesNoRoom) {
  first_ = Open(Room(2));
  Put(*first_, 1);
  clock_.Advance(absl::Seconds(1));
  Put(*first_, 2);
  clock_.Advance(absl::Seconds(1));
  // Not yet known to the first, for which this set is the least recently used one.
  ExpectIntact(*second_, 1);
  Put(*first_, 3);
  ExpectIntact(*second_, 1);
  EXPECT_EQ(Files().size(), 3u);
  // From now on it knows, and the budget holds: another one goes.
  clock_.Advance(absl::Seconds(1));
  ExpectIntact(*second_, 1);
  second_->Sweep();
  SweepToTheEnd(*first_);
  Put(*first_, 4);
  EXPECT_EQ(first_->stats().file_bytes, 2 * kSetBytes);
  ExpectIntact(*second_, 1);
  std::vector<std::string> ids;
  for (const fs::path& file : Files()) ids.push_back(file.stem());
  EXPECT_THAT(ids, ::testing::UnorderedElementsAre(TrueKeySetId(1), TrueKeySetId(4)));
}

TEST_F(SharedKeysTest, TheBudgetIsOfWhatAllHaveStored) {
  first_ = Open(Room(2));
  Put(*second_, 1);
  clock_.Advance(absl::Seconds(1));
  Put(*second_, 2);
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(first_->stats().file_bytes, 0);
  first_->Sweep();
  EXPECT_EQ(first_->stats().file_bytes, 2 * kSetBytes);
  EXPECT_EQ(first_->tenant_bytes("alice"), 2 * kSetBytes);
  Put(*first_, 3);
  EXPECT_EQ(Files().size(), 2u);
  ExpectUnknown(*first_, 1);
}

TEST_F(SharedKeysTest, WhatMadeRoomDoesNotComeBackBeforeItsFileIsGone) {
  KeyStore::Options options = Room(9);
  options.tenant_budget_bytes = kSetBytes;
  first_ = Open(options);
  Put(*first_, 1);
  // Holds up the thread that would remove it.
  absl::Notification go_on;
  first_->Drop("nobody", TestKeySetId(1),
               [&](const absl::Status&) { go_on.WaitForNotification(); });
  {
    ASSERT_OK_AND_ASSIGN(const KeyUpload upload, first_->Reserve("alice", kSetBytes));
    first_->Sweep();
    EXPECT_EQ(first_->tenant_bytes("alice"), kSetBytes);
    go_on.Notify();
  }
  SweepToTheEnd(*first_);
  EXPECT_EQ(first_->tenant_bytes("alice"), 0);
  EXPECT_THAT(Files(), IsEmpty());
}

TEST_F(SharedKeysTest, AllWriteTheSameSetAtOnceAndItIsWhole) {
  for (int round = 0; round < 8; ++round) {
    std::vector<std::thread> threads;
    for (KeyStore* store : {first_.get(), second_.get()}) {
      threads.emplace_back([store, round] { Put(*store, round); });
    }
    for (std::thread& thread : threads) thread.join();
    ExpectIntact(*first_, round);
    ExpectIntact(*second_, round);
  }
  EXPECT_EQ(Files().size(), 8u);
  EXPECT_THAT(Files(".tmp"), IsEmpty());
}

}  // namespace
}  // namespace cipherd::engine
