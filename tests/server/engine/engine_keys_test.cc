// Requests whose keys are not in host memory, and what one tenant may have under way.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/synchronization/notification.h"
#include "core/base/sha256.h"
#include "core/ckks/key_set_id.h"
#include "gtest/gtest.h"
#include "server/engine/failure_reason.h"
#include "tests/server/engine/engine_fixture.h"
#include "tests/server/engine/held_file.h"
#include "tests/server/engine/key_directory.h"

namespace cipherd::engine {
namespace {

namespace fs = std::filesystem;
using ::cipherd::testing::OpenTestDevice;
using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;
using namespace engine::testing;  // NOLINT: the test's own vocabulary

constexpr int64_t kSetBytes = 2 * kWordCount * 8;

class EngineKeysTest : public EngineTest {
 protected:
  void SetUp() override {
    options_ = SmallEngine();
    options_.keys.directory = directory_;
  }
  void TearDown() override {
    EngineTest::TearDown();
    engine_.reset();
  }

  // Serves, with keys of "alice" and "bob" on file only.
  void StartWithKeysOnFile() {
    Serve();
    for (const auto& [tenant, seed] : Tenants()) {
      ASSERT_OK(PutTestKeys(engine_->keys(), tenant, TrueKeySetId(seed), seed));
    }
    Serve();
    ASSERT_EQ(engine_->keys().used_bytes(), 0);
  }
  void Serve() {
    engine_.reset();
    ASSERT_OK_AND_ASSIGN(std::unique_ptr<runtime::Device> device, OpenTestDevice("cpu"));
    ASSERT_OK_AND_ASSIGN(engine_, Engine::Create(std::move(device), options_, base::Clock::Real()));
    ASSERT_OK(engine_->AddProgram(std::make_shared<TestProgram>("sum", gate_)));
    ASSERT_OK(engine_->LoadProgram("sum"));
  }
  static std::vector<std::pair<std::string, int>> Tenants() { return {{"alice", 1}, {"bob", 2}}; }
  std::unique_ptr<Call> RunAs(const std::string& tenant, int seed, uint64_t value) {
    return std::make_unique<Call>(
        *engine_, RequestHead{.program = "sum", .tenant = tenant, .key_set_id = TrueKeySetId(seed)},
        value, seed);
  }
  // The id of the set.
  static std::string PutFirstKeyOnly(KeyStore& store, const std::string& tenant) {
    absl::StatusOr<KeyUpload> upload = store.Reserve(tenant, kSetBytes / 2);
    EXPECT_OK(upload.status());
    absl::StatusOr<value::Tensor> data = upload->Allocate({kWordCount});
    EXPECT_OK(data.status());
    std::fill_n(data->data_as<uint64_t>(), kWordCount, 5);
    const base::Sha256Digest digest =
        base::Sha256Of({data->data_as<uint8_t>(), static_cast<size_t>(data->bytes())});
    const ckks::KeyId key_id = TestProgram("sum").info().keys.ids().front();
    ckks::KeySetIdBuilder builder(absl::HexStringToBytes(kContextId));
    builder.Add(key_id, digest);
    KeyStore::NewSet set{.id = base::ToHex(builder.Finish()), .context_id = kContextId};
    const std::string id = set.id;
    set.digests.emplace(key_id, digest);
    set.keys.emplace(key_id, ckks::EvaluationKey{key_id, *std::move(data)});
    absl::Notification stored;
    store.Commit(*std::move(upload), std::move(set), [&](const auto& committed) {
      EXPECT_OK(committed.status());
      stored.Notify();
    });
    stored.WaitForNotification();
    return id;
  }
  fs::path FileOf(int seed) const {
    for (const auto& entry : fs::recursive_directory_iterator(directory_)) {
      if (entry.path().stem() == TrueKeySetId(seed)) return entry.path();
    }
    return {};
  }

  const KeyDirectory key_directory_;
  const std::string& directory_ = key_directory_.path();
  EngineOptions options_;
};

TEST_F(EngineKeysTest, ARequestWhoseKeysAreOnFileIsServed) {
  StartWithKeysOnFile();
  for (int round = 0; round < 3; ++round) {
    for (const auto& [tenant, seed] : Tenants()) {
      auto call = RunAs(tenant, seed, 10 * round);
      EXPECT_TRUE(call->is_correct()) << call->result().ToString();
    }
  }
  EXPECT_EQ(engine_->keys().stats().file_loads, 2u);
}

TEST_F(EngineKeysTest, TenantsWhoPushEachOtherOutOfEveryTierGetTheirOwnResults) {
  options_.keys.host_budget_bytes = kSetBytes;
  options_.keys.device_budget_bytes = kSetBytes;
  StartWithKeysOnFile();
  for (int round = 0; round < 20; ++round) {
    for (const auto& [tenant, seed] : Tenants()) {
      // The other's set may be pinned until its continuation has returned.
      while (true) {
        auto call = RunAs(tenant, seed, 100 * round);
        if (ReasonOf(call->result()) == FailureReason::kOverloaded) continue;
        EXPECT_TRUE(call->is_correct()) << call->result().ToString();
        break;
      }
    }
  }
  EXPECT_GE(engine_->keys().stats().file_loads, 39u);
}

TEST_F(EngineKeysTest, ASetThatAnotherDaemonHasStoredServesAndMustFitTheProgram) {
  options_.keys.is_directory_shared = true;
  Serve();
  ASSERT_OK_AND_ASSIGN(std::unique_ptr<runtime::Device> device, OpenTestDevice("cpu"));
  ASSERT_OK_AND_ASSIGN(const std::unique_ptr<KeyStore> other,
                       KeyStore::Open(*device, {.budget_bytes = 2 * kSetBytes,
                                                .max_set_bytes = kSetBytes,
                                                .directory = directory_,
                                                .is_directory_shared = true}));
  ASSERT_OK(PutTestKeys(*other, "alice", TrueKeySetId(1), 1));
  auto call = RunAs("alice", 1, 7);
  EXPECT_TRUE(call->is_correct()) << call->result().ToString();
  EXPECT_EQ(ReasonOf(RunAs("bob", 1, 7)->result()), FailureReason::kUnknownKeySet);

  // One of its two keys.
  const std::string id = PutFirstKeyOnly(*other, "carol");
  auto refused = std::make_unique<Call>(
      *engine_, RequestHead{.program = "sum", .tenant = "carol", .key_set_id = id}, 7, 1);
  EXPECT_EQ(ReasonOf(refused->result()), FailureReason::kMissingKey)
      << refused->result().ToString();
  EXPECT_EQ(served().trees().leased_count(), 0u);
}

TEST_F(EngineKeysTest, WhileOneWaitsForItsKeysOthersAreServed) {
  StartWithKeysOnFile();
  EXPECT_TRUE(RunAs("bob", 2, 1)->is_correct());
  HeldFile held(FileOf(1));
  std::vector<std::unique_ptr<Call>> waiting;
  for (int i = 0; i < 3; ++i) waiting.push_back(RunAs("alice", 1, i));
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(RunAs("bob", 2, i)->is_correct());
  for (auto& call : waiting) EXPECT_FALSE(call->has_ended());
  held.Release();
  for (auto& call : waiting) EXPECT_TRUE(call->is_correct()) << call->result().ToString();
  EXPECT_EQ(engine_->keys().stats().file_loads, 2u) << "one read, however many wait";
}

TEST_F(EngineKeysTest, ACancelledRequestWaitsForNoKeysAndHoldsNothing) {
  StartWithKeysOnFile();
  HeldFile held(FileOf(1));
  auto cancelled = RunAs("alice", 1, 1);
  auto stays = RunAs("alice", 1, 2);
  EXPECT_EQ(served().trees().leased_count(), 2u);
  engine_->Cancel(cancelled->request());
  EXPECT_THAT(cancelled->result(), StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(cancelled->request()->state(), RequestState::kCancelled);
  EXPECT_EQ(served().trees().leased_count(), 1u);
  held.Release();
  EXPECT_TRUE(stays->is_correct());
}

TEST_F(EngineKeysTest, ARequestCancelledBeforeItsInputsWereCompleteEndsAtSubmit) {
  StartWithKeysOnFile();
  HeldFile held(FileOf(1));
  const RequestPtr request =
      engine_->Open({.program = "sum", .tenant = "alice", .key_set_id = TrueKeySetId(1)});
  ASSERT_OK(engine_->Admit(*request));
  engine_->Cancel(request);
  absl::Status result;
  engine_->Submit(request, [&](const absl::Status& status) { result = status; });
  EXPECT_THAT(result, StatusIs(absl::StatusCode::kCancelled));
  EXPECT_EQ(served().trees().leased_count(), 0u);
}

TEST_F(EngineKeysTest, StoppingEndsWhoWaitsForKeys) {
  StartWithKeysOnFile();
  auto held = std::make_unique<HeldFile>(FileOf(1));
  auto first = RunAs("alice", 1, 1);
  // Behind the first on the disk's thread.
  auto second = RunAs("bob", 2, 2);
  held->AwaitReader();
  std::thread stop([&] { EXPECT_OK(engine_->Stop()); });
  held->Release();
  first->result();
  second->result();
  stop.join();
  for (Call* call : {first.get(), second.get()}) {
    EXPECT_TRUE(call->is_correct() || absl::IsUnavailable(call->result()))
        << call->result().ToString();
  }
}

TEST_F(EngineKeysTest, AProgramWhoseKeysNoTierHoldsIsNotLoaded) {
  Serve();
  class Hungry final : public Program {
   public:
    explicit Hungry(int64_t key_bytes) : info_(inner_.info()) { info_.key_bytes = key_bytes; }
    const ProgramInfo& info() const override { return info_; }
    absl::StatusOr<EvaluationTrees> MakeTrees(const TensorFactory& allocate) const override {
      return inner_.MakeTrees(allocate);
    }
    absl::StatusOr<ProgramBinding> Bind(runtime::Device& device, runtime::Stream& stream,
                                        const ServingSettings& settings) const override {
      return inner_.Bind(device, stream, settings);
    }

   private:
    TestProgram inner_{"hungry"};
    ProgramInfo info_;
  };
  const int64_t limit = options_.keys.max_set_bytes();
  EXPECT_THAT(engine_->AddProgram(std::make_shared<Hungry>(limit + 1)),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("hungry")));
  EXPECT_OK(engine_->AddProgram(std::make_shared<Hungry>(limit)));
}

TEST_F(EngineKeysTest, ATenantAtItsQuotaIsRefusedWhileOthersAreServed) {
  options_.quotas.max_requests = 2;
  StartWithKeysOnFile();
  gate_->Close();
  auto first = RunAs("alice", 1, 1);
  auto second = RunAs("alice", 1, 2);
  auto third = RunAs("alice", 1, 3);
  EXPECT_THAT(third->result(), StatusIs(absl::StatusCode::kResourceExhausted));
  EXPECT_EQ(ReasonOf(third->result()), FailureReason::kOverloaded);
  EXPECT_TRUE(RetryDelayOf(third->result()).has_value());
  auto other = RunAs("bob", 2, 4);
  EXPECT_FALSE(other->has_ended());
  gate_->Open();
  for (Call* call : {first.get(), second.get(), other.get()}) {
    EXPECT_TRUE(call->is_correct()) << call->result().ToString();
  }
  EXPECT_TRUE(RunAs("alice", 1, 5)->is_correct()) << "what has ended counts no more";
}

}  // namespace
}  // namespace cipherd::engine
