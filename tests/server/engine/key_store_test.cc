#include "server/engine/key_store.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/value/tensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/engine/failure_reason.h"
#include "tests/server/engine/freed_memory.h"
#include "tests/server/engine/test_program.h"
#include "tests/testing/devices.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::engine {
namespace {

using ::cipherd::testing::OpenTestDevice;
using ::cipherd::testing::StatusIs;
using ::testing::Each;
using ::testing::HasSubstr;
using namespace engine::testing;  // NOLINT: the test's own vocabulary

constexpr int64_t kSetBytes = 2 * kWordCount * 8;

class KeyStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_OK_AND_ASSIGN(device_, OpenTestDevice("cpu"));
    Open({.budget_bytes = 3 * kSetBytes, .max_set_bytes = 2 * kSetBytes});
  }
  void Open(const KeyStore::Options& options) {
    store_.reset();
    ASSERT_OK_AND_ASSIGN(
        store_, KeyStore::Open(
                    *device_, options,
                    [this](const KeySetInfo& keys) { dropped_.push_back(keys.id); }, clock_));
  }

  std::vector<uint64_t> FoundAt(const void* address) {
    const value::Tensor taken = TakeAt(address, [&] {
      return value::Tensor::AllocatePinned(*device_, value::DType::kUint64, {kWordCount});
    });
    const uint64_t* const words = taken.data_as<uint64_t>();
    return {words, words + kWordCount};
  }
  size_t PinnedBytes() { return device_->pinned_memory_stats().allocated_bytes; }

  std::unique_ptr<runtime::Device> device_;
  base::FakeClock clock_;
  std::vector<std::string> dropped_;
  std::unique_ptr<KeyStore> store_;
};

TEST_F(KeyStoreTest, ASetIsFoundByItsTenantOnly) {
  const std::string id = TestKeySetId(1);
  ASSERT_OK(PutTestKeys(*store_, "alice", id, 1));
  EXPECT_OK(store_->Find("alice", id));
  const absl::Status foreign = store_->Find("bob", id).status();
  const absl::Status unknown = store_->Find("alice", TestKeySetId(2)).status();
  EXPECT_EQ(foreign.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReasonOf(foreign), FailureReason::kUnknownKeySet);
  // The same words but for the id that was asked for.
  EXPECT_EQ(foreign, store_->Find("carol", id).status());
  EXPECT_EQ(ReasonOf(unknown), ReasonOf(foreign));
  EXPECT_EQ(unknown.message().size(), foreign.message().size());
}

TEST_F(KeyStoreTest, ASetIsWipedFromHostMemoryWhenItsLastOwnerHasGone) {
  ASSERT_OK_AND_ASSIGN(KeySetRef keys, PutTestKeys(*store_, "alice", TestKeySetId(1), 1));
  const void* const address = keys->keys.begin()->second.data.data();
  ASSERT_OK(DropTestKeys(*store_, "alice", TestKeySetId(1)));
  EXPECT_EQ(*static_cast<const uint64_t*>(address), KeyWords(1, 0).front());
  keys.reset();
  EXPECT_THAT(FoundAt(address), Each(0));
}

TEST_F(KeyStoreTest, AnUploadThatIsGivenUpIsWiped) {
  const void* address = nullptr;
  {
    ASSERT_OK_AND_ASSIGN(KeyUpload upload, store_->Reserve("alice", kSetBytes));
    ASSERT_OK_AND_ASSIGN(const value::Tensor key, upload.Allocate({kWordCount}));
    std::ranges::fill(std::span(key.data_as<uint64_t>(), kWordCount), 77);
    address = key.data();
  }
  EXPECT_THAT(FoundAt(address), Each(0));
}

TEST_F(KeyStoreTest, TenantsWithEqualContentHaveASetEach) {
  const std::string id = TestKeySetId(1);
  ASSERT_OK(PutTestKeys(*store_, "alice", id, 1));
  ASSERT_OK(PutTestKeys(*store_, "bob", id, 1));
  EXPECT_EQ(store_->set_count(), 2u);
  EXPECT_THAT(DropTestKeys(*store_, "carol", id), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_OK(DropTestKeys(*store_, "alice", id));
  EXPECT_OK(store_->Find("bob", id));
}

TEST_F(KeyStoreTest, ASecondUploadOfASetIsGivenUp) {
  const std::string id = TestKeySetId(1);
  ASSERT_OK_AND_ASSIGN(const KeySetRef first, PutTestKeys(*store_, "alice", id, 1));
  const size_t pinned = PinnedBytes();
  ASSERT_OK_AND_ASSIGN(const KeySetRef second, PutTestKeys(*store_, "alice", id, 1));
  EXPECT_EQ(first, second);
  EXPECT_EQ(store_->used_bytes(), kSetBytes);
  EXPECT_EQ(PinnedBytes(), pinned);
}

TEST_F(KeyStoreTest, HalfAnUploadIsInvisibleAndLeavesNothing) {
  const size_t pinned = PinnedBytes();
  {
    ASSERT_OK_AND_ASSIGN(KeyUpload upload, store_->Reserve("alice", kSetBytes));
    ASSERT_OK_AND_ASSIGN(const value::Tensor key, upload.Allocate({kWordCount}));
    EXPECT_EQ(store_->used_bytes(), kSetBytes);
    EXPECT_EQ(store_->set_count(), 0u);
    EXPECT_GT(PinnedBytes(), pinned);
  }
  EXPECT_EQ(store_->used_bytes(), 0);
  EXPECT_EQ(PinnedBytes(), pinned);
}

TEST_F(KeyStoreTest, TheBudgetIsChargedBeforeMemoryIsAllocated) {
  const size_t pinned = PinnedBytes();
  ASSERT_OK_AND_ASSIGN(KeyUpload a, store_->Reserve("alice", 2 * kSetBytes));
  ASSERT_OK_AND_ASSIGN(KeyUpload b, store_->Reserve("bob", kSetBytes));
  const absl::Status refused = store_->Reserve("carol", 1).status();
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(ReasonOf(refused), FailureReason::kOverloaded);
  EXPECT_EQ(store_->tenant_bytes("carol"), 0);
  EXPECT_EQ(PinnedBytes(), pinned);
}

TEST_F(KeyStoreTest, TheLeastRecentlyUsedSetMakesRoomAndIsUnknown) {
  for (int i : {1, 2, 3}) ASSERT_OK(PutTestKeys(*store_, "alice", TestKeySetId(i), i));
  ASSERT_OK(store_->Find("alice", TestKeySetId(1)));
  ASSERT_OK(PutTestKeys(*store_, "bob", TestKeySetId(4), 4));
  EXPECT_THAT(dropped_, ::testing::ElementsAre(TestKeySetId(2)));
  const absl::Status evicted = store_->Find("alice", TestKeySetId(2)).status();
  EXPECT_THAT(evicted, StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(ReasonOf(evicted), FailureReason::kUnknownKeySet);
  for (int i : {1, 3}) EXPECT_OK(AwaitKeys(*store_, "alice", TestKeySetId(i)));
  EXPECT_EQ(store_->used_bytes(), 3 * kSetBytes);
  EXPECT_EQ(store_->stats().host_evictions, 1u);
  // Uploaded again, it is as new.
  EXPECT_OK(PutTestKeys(*store_, "alice", TestKeySetId(2), 2));
}

TEST_F(KeyStoreTest, ASetThatSomebodyRefersToIsNotEvicted) {
  std::vector<KeySetRef> in_use;
  for (int i : {1, 2}) {
    ASSERT_OK_AND_ASSIGN(in_use.emplace_back(), PutTestKeys(*store_, "alice", TestKeySetId(i), i));
  }
  ASSERT_OK(PutTestKeys(*store_, "alice", TestKeySetId(3), 3));
  ASSERT_OK(PutTestKeys(*store_, "alice", TestKeySetId(4), 4));
  EXPECT_THAT(dropped_, ::testing::ElementsAre(TestKeySetId(3)));
  // Two sets of room are pinned and one is not: nobody leaves for an upload that finds no room.
  const absl::Status refused = store_->Reserve("bob", 2 * kSetBytes).status();
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(ReasonOf(refused), FailureReason::kOverloaded);
  EXPECT_EQ(dropped_.size(), 1u);
  in_use.clear();
  EXPECT_OK(store_->Reserve("bob", 2 * kSetBytes));
}

TEST_F(KeyStoreTest, ATenantAtItsQuotaMakesRoomOfItsOwnSets) {
  Open({.budget_bytes = 9 * kSetBytes,
        .max_set_bytes = 9 * kSetBytes,
        .tenant_budget_bytes = 2 * kSetBytes});
  ASSERT_OK(PutTestKeys(*store_, "bob", TestKeySetId(9), 9));
  for (int i : {1, 2, 3}) ASSERT_OK(PutTestKeys(*store_, "alice", TestKeySetId(i), i));
  EXPECT_THAT(dropped_, ::testing::ElementsAre(TestKeySetId(1)));
  EXPECT_EQ(store_->tenant_bytes("alice"), 2 * kSetBytes);
  EXPECT_OK(store_->Find("bob", TestKeySetId(9)));
  // What cannot be had at all is a limit; what is in use is an overload, uploads included.
  EXPECT_EQ(ReasonOf(store_->Reserve("alice", 2 * kSetBytes + 1).status()),
            FailureReason::kLimitExceeded);
  ASSERT_OK_AND_ASSIGN(const KeyUpload upload, store_->Reserve("alice", 2 * kSetBytes));
  EXPECT_EQ(ReasonOf(store_->Reserve("alice", 1).status()), FailureReason::kOverloaded);
  EXPECT_OK(store_->Reserve("bob", kSetBytes));
}

TEST_F(KeyStoreTest, TheQuotaComesBackWithEachUploadThatEnds) {
  Open({.budget_bytes = 9 * kSetBytes,
        .max_set_bytes = 9 * kSetBytes,
        .tenant_budget_bytes = 2 * kSetBytes});
  for (int round = 0; round < 5; ++round) {
    { ASSERT_OK_AND_ASSIGN(const KeyUpload given_up, store_->Reserve("alice", 2 * kSetBytes)); }
    EXPECT_EQ(store_->tenant_bytes("alice"), 0);
    ASSERT_OK(PutTestKeys(*store_, "alice", TestKeySetId(1), 1));
    ASSERT_OK(PutTestKeys(*store_, "alice", TestKeySetId(1), 1));
    EXPECT_EQ(store_->tenant_bytes("alice"), kSetBytes);
    ASSERT_OK(DropTestKeys(*store_, "alice", TestKeySetId(1)));
    EXPECT_EQ(store_->tenant_bytes("alice"), 0);
  }
}

TEST_F(KeyStoreTest, ASetThatIsNotUsedForItsTimeToLiveExpires) {
  Open({.budget_bytes = 9 * kSetBytes,
        .max_set_bytes = kSetBytes,
        .time_to_live = absl::Hours(1),
        .sweep_interval = absl::InfiniteDuration()});
  ASSERT_OK(PutTestKeys(*store_, "alice", TestKeySetId(1), 1));
  ASSERT_OK(PutTestKeys(*store_, "alice", TestKeySetId(2), 2));
  ASSERT_OK_AND_ASSIGN(const KeySetRef in_use, PutTestKeys(*store_, "alice", TestKeySetId(3), 3));
  clock_.Advance(absl::Minutes(59));
  ASSERT_OK(store_->Find("alice", TestKeySetId(2)));
  store_->Sweep();
  EXPECT_EQ(store_->set_count(), 3u);
  clock_.Advance(absl::Minutes(1));
  store_->Sweep();
  EXPECT_THAT(dropped_, ::testing::ElementsAre(TestKeySetId(1)));
  EXPECT_EQ(store_->stats().expirations, 1u);
}

TEST_F(KeyStoreTest, ASetAboveTheLimitIsRefusedForGood) {
  const absl::Status refused = store_->Reserve("alice", 2 * kSetBytes + 1).status();
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(ReasonOf(refused), FailureReason::kLimitExceeded);
  EXPECT_EQ(store_->used_bytes(), 0);
}

TEST_F(KeyStoreTest, AnUploadCannotAllocateMoreThanItReserved) {
  ASSERT_OK_AND_ASSIGN(KeyUpload upload, store_->Reserve("alice", kSetBytes));
  EXPECT_OK(upload.Allocate({kWordCount}));
  EXPECT_OK(upload.Allocate({kWordCount}));
  EXPECT_THAT(upload.Allocate({1}), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(upload.Allocate({int64_t{1} << 40, int64_t{1} << 40}),
              StatusIs(absl::StatusCode::kResourceExhausted));
}

TEST_F(KeyStoreTest, DroppingASetInUseDefersTheRelease) {
  const std::string id = TestKeySetId(1);
  const size_t pinned = PinnedBytes();
  ASSERT_OK_AND_ASSIGN(KeySetRef in_use, PutTestKeys(*store_, "alice", id, 7));
  ASSERT_OK(DropTestKeys(*store_, "alice", id));
  EXPECT_THAT(store_->Find("alice", id), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(DropTestKeys(*store_, "alice", id), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(dropped_, ::testing::ElementsAre(id));
  EXPECT_TRUE(in_use->info->dropped.load());

  // Its memory is its own until the last reference goes.
  EXPECT_EQ(store_->used_bytes(), kSetBytes);
  const uint64_t* words = in_use->keys.begin()->second.data.data_as<uint64_t>();
  EXPECT_EQ(std::vector<uint64_t>(words, words + kWordCount), KeyWords(7, 0));
  in_use.reset();
  EXPECT_EQ(store_->used_bytes(), 0);
  EXPECT_EQ(PinnedBytes(), pinned);
}

TEST_F(KeyStoreTest, AKeyThatTheProgramReadsMustBeThere) {
  const TestProgram program;
  ASSERT_OK_AND_ASSIGN(const KeySetRef keys, PutTestKeys(*store_, "alice", TestKeySetId(1), 1));
  EXPECT_OK(CheckKeysFit(*keys->info, program.info().keys, kContextId));
  const absl::Status missing = CheckKeysFit(
      *keys->info, ckks::KeyLayout({ckks::KeyId::Rotation(5, kWordCount)}), kContextId);
  EXPECT_THAT(missing, StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("rotation(5)")));
  EXPECT_EQ(ReasonOf(missing), FailureReason::kMissingKey);
  const absl::Status foreign = CheckKeysFit(*keys->info, program.info().keys, TestKeySetId(9));
  EXPECT_THAT(foreign, StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_EQ(ReasonOf(foreign), FailureReason::kWrongContext);
}

}  // namespace
}  // namespace cipherd::engine
