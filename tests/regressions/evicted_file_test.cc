// A set that made room while an upload of the same set waited for the disk: the file was removed
// after the upload had written it, so that a set whose upload was acknowledged was gone at the next
// start.
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "server/engine/key_store.h"
#include "tests/server/engine/test_program.h"
#include "tests/testing/devices.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::engine {
namespace {

namespace fs = std::filesystem;
using namespace engine::testing;  // NOLINT: the test's own vocabulary

constexpr int64_t kSetBytes = 2 * kWordCount * 8;

TEST(EvictedFileTest, AnUploadThatWasWaitingKeepsItsFile) {
  std::string directory = ::testing::TempDir() + "cipherd_keys_XXXXXX";
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  ASSERT_OK_AND_ASSIGN(const auto device, ::cipherd::testing::OpenTestDevice("cpu"));
  const KeyStore::Options options = {.budget_bytes = 9 * kSetBytes,
                                     .max_set_bytes = kSetBytes,
                                     .tenant_budget_bytes = 2 * kSetBytes,
                                     .directory = directory,
                                     .sweep_interval = absl::InfiniteDuration()};
  ASSERT_OK_AND_ASSIGN(auto store, KeyStore::Open(*device, options));
  const std::string id = TrueKeySetId(1);
  ASSERT_OK(PutTestKeys(*store, "alice", id, 1));

  // The disk's thread is held, the second upload of the set waits for it, and the first upload
  // makes room for a third.
  absl::Notification held, release;
  store->Drop("nobody", id, [&](const absl::Status&) {
    held.Notify();
    release.WaitForNotification();
  });
  held.WaitForNotification();
  absl::Notification committed;
  CommitTestKeys(*store, "alice", id, 1, [&](const absl::StatusOr<KeyStore::Committed>& stored) {
    EXPECT_OK(stored);
    committed.Notify();
  });
  ASSERT_OK_AND_ASSIGN(std::optional<KeyUpload> third, store->Reserve("alice", kSetBytes));
  release.Notify();
  committed.WaitForNotification();
  third.reset();

  store.reset();
  ASSERT_OK_AND_ASSIGN(store, KeyStore::Open(*device, options));
  EXPECT_OK(AwaitKeys(*store, "alice", id));
  store.reset();
  fs::remove_all(directory);
}

}  // namespace
}  // namespace cipherd::engine
