// The fixture of the conformance suites: one device of the parameter's kind, and small blocks on
// it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/runtime/device.h"
#include "gtest/gtest.h"
#include "tests/testing/devices.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::runtime {

using ::cipherd::testing::DeviceParamName;
using ::cipherd::testing::DevicesUnderTest;
using ::cipherd::testing::HoldStream;
using ::cipherd::testing::StatusIs;
using ::cipherd::testing::StreamHold;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr size_t kBlockBytes = 4096;

class DeviceTest : public ::testing::TestWithParam<std::string> {
 protected:
  explicit DeviceTest(const DeviceOptions& options = testing::SmallPools()) : options_(options) {}

  void SetUp() override { device_ = Open(); }

  std::unique_ptr<Device> Open() { return testing::OpenTestDevice(GetParam(), options_).value(); }
  std::unique_ptr<Stream> NewStream(std::string_view name) {
    return device_->CreateStream(name).value();
  }
  std::shared_ptr<Event> NewEvent() { return device_->CreateEvent().value(); }
  StoragePtr NewBlock(Stream& stream, size_t bytes = kBlockBytes) {
    return device_->Allocate(bytes, stream).value();
  }
  // Pinned memory filled with `value`.
  StoragePtr NewPinned(uint8_t value, size_t bytes = kBlockBytes) {
    StoragePtr block = device_->AllocatePinned(bytes).value();
    std::fill_n(static_cast<uint8_t*>(block->data()), bytes, value);
    return block;
  }

  const DeviceOptions options_;
  std::unique_ptr<Device> device_;
};

// Both pools are one slab, which one block of kSlabBytes takes whole: memory is handed out again
// exactly when a second such block can be had.
class OneSlabTest : public DeviceTest {
 protected:
  static constexpr size_t kSlabBytes = size_t{1} << 20;

  explicit OneSlabTest(size_t slab_count = 1) : DeviceTest(Options(slab_count)) {}

 private:
  static DeviceOptions Options(size_t slab_count) {
    DeviceOptions options;
    for (PoolOptions* pool : {&options.device_memory, &options.pinned_memory}) {
      pool->slab_bytes = kSlabBytes;
      pool->budget_bytes = slab_count * kSlabBytes;
    }
    return options;
  }
};

inline absl::Status Fill(Stream& stream, const StoragePtr& block, uint8_t value) {
  return stream.FillAsync(block->data(), value, block->bytes());
}

// Of two blocks of the same size.
inline absl::Status Copy(Stream& stream, const StoragePtr& destination, const StoragePtr& source) {
  return stream.CopyAsync(destination->data(), source->data(), source->bytes());
}

// Host memory only, and only when no stream writes it.
inline bool HoldsOnly(const StoragePtr& block, uint8_t value) {
  const auto* const bytes = static_cast<const uint8_t*>(block->data());
  return std::all_of(bytes, bytes + block->bytes(), [&](uint8_t byte) { return byte == value; });
}

}  // namespace cipherd::runtime

#define INSTANTIATE_ON_DEVICES(suite) \
  INSTANTIATE_TEST_SUITE_P(Devices, suite, ::testing::ValuesIn(DevicesUnderTest()), DeviceParamName)
