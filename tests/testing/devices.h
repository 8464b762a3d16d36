// The devices that a suite runs on, and what every suite over devices needs.
//
//   class CopyTest : public ::testing::TestWithParam<std::string> {};
//   TEST_P(CopyTest, RoundTrip) {
//     ASSERT_OK_AND_ASSIGN(auto device, OpenTestDevice(GetParam()));
//     ASSERT_OK_AND_ASSIGN(auto stream, device->CreateStream("compute"));
//     ASSERT_OK_AND_ASSIGN(StoragePtr block, Upload<int>({1, 2, 3}, *device, *stream));
//     ASSERT_OK_AND_ASSIGN(std::vector<int> back, Download<int>(block->data(), 3, *stream));
//   }
//   INSTANTIATE_TEST_SUITE_P(Devices, CopyTest, ::testing::ValuesIn(DevicesUnderTest()),
//                            DeviceParamName);
//
// "cpu" is the CPU device; "puppet" runs, at a blocking call, only what that call needs, so that
// everything else happens as late as it may; "puppet_eager" then first runs everything else, so
// that it happens as early as it may; "cuda" is the first GPU, present where this machine has one.
// A test that steps streams by hand opens a PuppetDevice itself
// (core/runtime/host/puppet_device.h).
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/status_macros.h"
#include "core/runtime/device.h"
#include "gtest/gtest.h"

namespace cipherd::testing {

std::vector<std::string> DevicesUnderTest();

// Names the instances of a suite after their device.
std::string DeviceParamName(const ::testing::TestParamInfo<std::string>& info);

// Slabs of 1 MiB and a budget of 1 GiB in both pools, so that tests open devices quickly.
runtime::DeviceOptions SmallPools();

absl::StatusOr<std::unique_ptr<runtime::Device>> OpenTestDevice(
    std::string_view param, const runtime::DeviceOptions& options = SmallPools());

// Device memory on `stream` that holds `bytes`. Blocks until the copy is done.
absl::StatusOr<runtime::StoragePtr> UploadBytes(std::span<const uint8_t> bytes,
                                                runtime::Device& device, runtime::Stream& stream);

// The `bytes` bytes at `source` (any memory that the device reads), after everything enqueued on
// `stream`. Blocks.
absl::StatusOr<std::vector<uint8_t>> DownloadBytes(const void* source, size_t bytes,
                                                   runtime::Stream& stream);

template <typename T>
absl::StatusOr<runtime::StoragePtr> Upload(const std::vector<T>& values, runtime::Device& device,
                                           runtime::Stream& stream) {
  static_assert(std::is_trivially_copyable_v<T>);
  return UploadBytes(
      std::span(reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(T)), device,
      stream);
}

template <typename T>
absl::StatusOr<std::vector<T>> Download(const void* source, size_t count, runtime::Stream& stream) {
  static_assert(std::is_trivially_copyable_v<T>);
  CIPHERD_ASSIGN_OR_RETURN(std::vector<uint8_t> bytes,
                           DownloadBytes(source, count * sizeof(T), stream));
  std::vector<T> values(count);
  if (count > 0) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

// Keeps what is enqueued on a stream after HoldStream from running until Release (or destruction),
// so that an ordering fault shows every time. Declare it after the stream. While a stream is held,
// a blocking call that needs its later work blocks, also on the puppet, until another thread
// releases. On CUDA the hold is a host function: host functions of every stream, and with them
// fills of pinned memory and copies between pinned blocks, may queue behind it, so that what goes
// on beside a hold touches device memory; copies from pageable memory may block.
class StreamHold {
 public:
  StreamHold() = default;
  explicit StreamHold(std::function<void()> release) : release_(std::move(release)) {}
  StreamHold(StreamHold&& other) noexcept : release_(std::exchange(other.release_, nullptr)) {}
  StreamHold& operator=(StreamHold&& other) noexcept {
    if (this != &other) {
      Release();
      release_ = std::exchange(other.release_, nullptr);
    }
    return *this;
  }
  ~StreamHold() { Release(); }

  void Release() {
    if (auto release = std::exchange(release_, nullptr)) release();
  }

 private:
  std::function<void()> release_;
};

StreamHold HoldStream(runtime::Stream& stream);

// Makes `stream` fail with `error` after everything enqueued so far, as a device fault would.
absl::Status FailStream(runtime::Stream& stream, const absl::Status& error);

// What must be equal before and after something that may not keep memory: live bytes, after streams
// are idle. Reserved bytes and calls to the system are compared by suites that warm the pools
// first.
struct MemoryFigures {
  size_t device_allocated_bytes = 0;
  size_t pinned_allocated_bytes = 0;

  bool operator==(const MemoryFigures&) const = default;
};
std::ostream& operator<<(std::ostream& out, const MemoryFigures& figures);

// Synchronizes the device, so that blocks which wait for streams are counted as free.
absl::StatusOr<MemoryFigures> MemoryFiguresOf(runtime::Device& device);

}  // namespace cipherd::testing
