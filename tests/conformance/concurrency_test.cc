#include <thread>

#include "tests/conformance/device_test.h"

namespace cipherd::runtime {
namespace {

class ConcurrencyTest : public DeviceTest {};
INSTANTIATE_ON_DEVICES(ConcurrencyTest);

// Each thread has streams of its own and shares the device, its pools and one event with all
// others.
TEST_P(ConcurrencyTest, R44_ThreadsShareADeviceWithoutMixingTheirWork) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 60;
  auto shared_event = NewEvent();
  const auto work = [&](int thread) {
    auto transfer = NewStream("transfer");
    auto compute = NewStream("compute");
    auto copied = NewEvent();
    for (int round = 0; round < kRounds; ++round) {
      const uint8_t value = static_cast<uint8_t>(1 + thread * kRounds + round);
      const StoragePtr source = NewPinned(value);
      const StoragePtr result = NewPinned(0);
      StoragePtr staged = NewBlock(*transfer);
      ASSERT_OK(Copy(*transfer, staged, source));
      ASSERT_OK(transfer->Record(*copied));
      ASSERT_OK(transfer->Record(*shared_event));
      ASSERT_OK(compute->Wait(*copied));
      ASSERT_OK(compute->Wait(*shared_event));
      StoragePtr scratch = NewBlock(*compute);
      ASSERT_OK(Copy(*compute, scratch, staged));
      staged->RecordUse(*compute);
      staged.reset();
      ASSERT_OK(Copy(*compute, result, scratch));
      scratch.reset();
      ASSERT_OK(compute->Synchronize());
      ASSERT_TRUE(HoldsOnly(result, value));
    }
  };
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) threads.emplace_back(work, thread);
  for (std::thread& thread : threads) thread.join();
  ASSERT_OK(device_->Synchronize());
  EXPECT_EQ(device_->device_memory_stats().allocated_bytes, 0u);
}

TEST_P(ConcurrencyTest, R44_ThreadsCaptureAndReplayAtTheSameTime) {
  const auto work = [&](int thread) {
    auto stream = NewStream("compute");
    const StoragePtr source = NewPinned(0);
    const StoragePtr result = NewPinned(0);
    for (int round = 0; round < 20; ++round) {
      ASSERT_OK(stream->BeginCapture(true));
      const StoragePtr scratch = NewBlock(*stream);
      ASSERT_OK(Copy(*stream, scratch, source));
      ASSERT_OK(Copy(*stream, result, scratch));
      ASSERT_OK_AND_ASSIGN(auto graph, stream->EndCapture());
      const uint8_t value = static_cast<uint8_t>(1 + thread * 20 + round);
      std::fill_n(static_cast<uint8_t*>(source->data()), source->bytes(), value);
      ASSERT_OK(graph->CheckLiveness());
      ASSERT_OK(graph->Launch(*stream));
      ASSERT_OK(stream->Synchronize());
      ASSERT_TRUE(HoldsOnly(result, value));
    }
  };
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) threads.emplace_back(work, thread);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace cipherd::runtime
