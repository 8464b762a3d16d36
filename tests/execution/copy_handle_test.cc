#include "core/execution/copy_handle.h"

#include <memory>
#include <type_traits>
#include <utility>

#include "core/execution/reusable_value_buffer.h"
#include "tests/execution/execution_fixture.h"

namespace cipherd::testing {
namespace {

using execution::CopyHandle;
using execution::ReusableValueBuffer;
using ::testing::HasSubstr;
using value::Placement;
using value::Tensor;
using value::ValueTree;

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

class CopyHandleTest : public ExecutionTest {
 protected:
  void SetUp() override {
    ExecutionTest::SetUp();
    buffer_ = DeviceBuffer(PinnedTree({1, 1}));
  }
  void TearDown() override {
    buffer_.reset();
    ExecutionTest::TearDown();
  }

  // A copy whose source only the handle and the buffer keep.
  CopyHandle Copy(std::weak_ptr<runtime::Storage>* source_storage = nullptr) {
    const ValueTree source = PinnedTree({2, 2});
    if (source_storage != nullptr) *source_storage = OnlyTensor(source).storage();
    return buffer_->CopyFrom(source, {.stream = transfer_.get()}).value();
  }

  std::unique_ptr<ReusableValueBuffer> buffer_;
};

TEST_P(CopyHandleTest, H1_SaysWhatWasCopiedWhere) {
  const CopyHandle copied = Copy();
  EXPECT_NE(copied.event(), nullptr);
  EXPECT_EQ(copied.placement(), Placement::On(*device_));
  EXPECT_EQ(copied.bytes_copied(), 16);
}

TEST_P(CopyHandleTest, H1_DoneNeverBlocks) {
  StreamHold hold = Hold(*transfer_);
  const CopyHandle copied = Copy();
  for (int i = 0; i < 100; ++i) ASSERT_THAT(copied.Done(), Holds(false));
  hold.Release();
  ASSERT_OK(transfer_->Synchronize());
  EXPECT_THAT(copied.Done(), Holds(true));
}

TEST_P(CopyHandleTest, H1_WaitOnOrdersTheStreamAndLetsTheCpuGoOn) {
  StreamHold hold = Hold(*transfer_);
  const CopyHandle copied = Copy();
  ASSERT_OK_AND_ASSIGN(CopyHandle same, copied.WaitOn(*compute_));
  EXPECT_EQ(same, copied);
  const Tensor read = EnqueueRead(OnlyTensor(buffer_->value().value()), *compute_);
  LetEverythingRun();
  EXPECT_THAT(copied.Done(), Holds(false));
  hold.Release();
  ASSERT_OK(compute_->Synchronize());
  EXPECT_EQ(ReadWords(read), (Words{2, 2}));
}

TEST_P(CopyHandleTest, H1_SynchronizeReturnsWhenThePayloadIsThere) {
  const CopyHandle copied = Copy();
  ASSERT_OK(copied.Synchronize());
  EXPECT_EQ(ReadWords(buffer_->value().value()), (Words{2, 2}));
  EXPECT_THAT(copied.Done(), Holds(true));
}

TEST_P(CopyHandleTest, H2_SynchronizeReleasesTheSource) {
  std::weak_ptr<runtime::Storage> source;
  const CopyHandle copied = Copy(&source);
  EXPECT_FALSE(source.expired());
  ASSERT_OK(copied.Synchronize());
  EXPECT_TRUE(source.expired());
  ASSERT_OK(copied.Synchronize());
}

TEST_P(CopyHandleTest, H2_DoneReleasesTheSourceWhenTrueAndNotBefore) {
  std::weak_ptr<runtime::Storage> source;
  StreamHold hold = Hold(*transfer_);
  const CopyHandle copied = Copy(&source);
  ASSERT_THAT(copied.Done(), Holds(false));
  EXPECT_FALSE(source.expired());
  hold.Release();
  ASSERT_OK(transfer_->Synchronize());
  EXPECT_FALSE(source.expired());
  ASSERT_THAT(copied.Done(), Holds(true));
  EXPECT_TRUE(source.expired());
  EXPECT_THAT(copied.Done(), Holds(true));
}

TEST_P(CopyHandleTest, H2_TheBufferReleasesSourcesThatNobodyAsksAbout) {
  std::weak_ptr<runtime::Storage> source;
  Copy(&source);
  ASSERT_OK(transfer_->Synchronize());
  Copy();
  EXPECT_TRUE(source.expired());
}

TEST_P(CopyHandleTest, H2_WaitOnRefusesAStreamOfAnotherDevice) {
  const CopyHandle copied = Copy();
  EXPECT_THAT(copied.WaitOn(*other_stream_),
              StatusIs(kInvalid, HasSubstr("stream 'other' is of cpu:0")));
}

TEST_P(CopyHandleTest, H2_HandleWithoutEventIsDoneAndWaitsForNothing) {
  ASSERT_OK_AND_ASSIGN(auto on_host, ReusableValueBuffer::Like(PinnedTree({1, 1}), {}));
  ASSERT_OK_AND_ASSIGN(CopyHandle copied, on_host->CopyFrom(PinnedTree({2, 2}), {}));
  const int waits = device_->call_count(FaultPoint::kWait);
  EXPECT_EQ(copied.event(), nullptr);
  EXPECT_THAT(copied.Done(), Holds(true));
  EXPECT_OK(copied.WaitOn(*compute_));
  EXPECT_OK(copied.WaitOn(*other_stream_));
  EXPECT_OK(copied.Synchronize());
  EXPECT_EQ(device_->call_count(FaultPoint::kWait), waits);
}

TEST_P(CopyHandleTest, H3_ItsTokenTiesAHandleToItsBuffer) {
  static_assert(!std::is_default_constructible_v<CopyHandle>);
  auto other = DeviceBuffer(PinnedTree({1, 1}));
  const CopyHandle copied = Copy();
  EXPECT_TRUE(buffer_->Owns(copied));
  EXPECT_FALSE(other->Owns(copied));
  // Also where a later buffer happens to lie at the address of an earlier one.
  buffer_.reset();
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(DeviceBuffer(PinnedTree({1, 1}))->Owns(copied));
  EXPECT_OK(copied.Synchronize());
}

INSTANTIATE_ON_DEVICES(CopyHandleTest);

}  // namespace
}  // namespace cipherd::testing
