#include "core/runtime/device_id.h"

#include <string>
#include <utility>

#include "core/runtime/device.h"
#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::runtime {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;

TEST(DeviceId, ParsesWhatItPrintsAndTheShortForms) {
  for (const std::string text : {"cpu:0", "cuda:0", "cuda:7", "cuda:1023"}) {
    ASSERT_OK_AND_ASSIGN(const DeviceId id, DeviceId::Parse(text));
    EXPECT_EQ(id.ToString(), text);
  }
  EXPECT_EQ(DeviceId::Parse("cpu").value(), (DeviceId{DeviceId::Kind::kCpu, 0}));
  EXPECT_EQ(DeviceId::Parse("cuda").value(), (DeviceId{DeviceId::Kind::kCuda, 0}));
}

TEST(DeviceId, RefusesOtherTextAndQuotesIt) {
  for (const std::string text :
       {"", ":", "cpu:", "cpu:-1", "cpu:1024", "cuda:", "cuda:-1", "cuda:+1", "cuda: 1", "cuda:01",
        "cuda:x", "cuda:1024", "cuda:99999999999", "gpu:0", "CPU", "cpu:0:0", " cpu"}) {
    EXPECT_THAT(DeviceId::Parse(text),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"" + text + "\"")));
  }
}

TEST(DeviceId, OrdersByKindThenOrdinal) {
  const DeviceId cpu{DeviceId::Kind::kCpu, 0};
  const DeviceId first{DeviceId::Kind::kCuda, 0};
  const DeviceId second{DeviceId::Kind::kCuda, 1};
  EXPECT_LT(cpu, first);
  EXPECT_LT(first, second);
}

TEST(OpenDevice, OpensTheCpuByAllItsNames) {
  for (const auto& [spec, ordinal] : {std::pair("cpu", 0), {"cpu:0", 0}, {"cpu:3", 3}}) {
    ASSERT_OK_AND_ASSIGN(const auto device, OpenDevice(spec, {}));
    EXPECT_EQ(device->id(), (DeviceId{DeviceId::Kind::kCpu, ordinal}));
    EXPECT_FALSE(device->properties().name.empty());
    EXPECT_GT(device->properties().total_memory_bytes, 0u);
    EXPECT_EQ(device->properties().compute_capability, 0);
  }
}

TEST(OpenDevice, AutoIsAGpuExactlyWhereThereIsOne) {
  ASSERT_OK_AND_ASSIGN(const auto device, OpenDevice("auto", {}));
  EXPECT_EQ(device->id().kind,
            CudaDeviceCount() > 0 ? DeviceId::Kind::kCuda : DeviceId::Kind::kCpu);
}

TEST(OpenDevice, RefusesUnknownTextMissingGpusAndBadOptions) {
  EXPECT_THAT(OpenDevice("tpu", {}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(OpenDevice("cuda:1023", {}),
              ::testing::AnyOf(StatusIs(absl::StatusCode::kNotFound, HasSubstr("GPU")),
                               StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("CUDA"))));
  DeviceOptions options;
  options.pinned_memory.slab_bytes = 1000;
  EXPECT_THAT(OpenDevice("cpu", options),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("pinned_memory.slab_bytes")));
}

TEST(PoolOptions, ValidateNamesFieldExpectedAndActual) {
  const auto refuses = [](auto change, const std::string& field) {
    PoolOptions options;
    change(options);
    EXPECT_THAT(options.Validate(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(field)));
  };
  refuses([](PoolOptions& o) { o.slab_bytes = 0; }, "slab_bytes");
  refuses([](PoolOptions& o) { o.slab_bytes = 257; }, "got 257");
  refuses([](PoolOptions& o) { o.slab_bytes = (size_t{1} << 30) + 256; }, "slab_bytes");
  refuses([](PoolOptions& o) { o.budget_bytes = SIZE_MAX; }, "budget_bytes");
  refuses([](PoolOptions& o) { o.initial_bytes = o.budget_bytes + 1; }, "initial_bytes");
  EXPECT_OK(PoolOptions{}.Validate());
}

}  // namespace
}  // namespace cipherd::runtime
