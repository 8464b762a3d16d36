#include "server/device_list.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::vector<std::string> Names(const std::string& text, int gpu_count) {
  std::vector<std::string> names;
  const std::vector<runtime::DeviceId> ids = ParseDeviceList(text, gpu_count).value();
  for (const runtime::DeviceId& id : ids) {
    names.push_back(id.ToString());
  }
  return names;
}

using NameList = std::vector<std::string>;

TEST(DeviceList, NamesOneDeviceOrSeveral) {
  EXPECT_EQ(Names("cpu", 0), NameList({"cpu:0"}));
  EXPECT_EQ(Names("cuda", 2), NameList({"cuda:0"}));
  EXPECT_EQ(Names("cuda:1,cuda:0", 2), NameList({"cuda:1", "cuda:0"}));
  EXPECT_EQ(Names("cpu:0,cpu:2", 0), NameList({"cpu:0", "cpu:2"}));
}

TEST(DeviceList, CpusWithoutNumbersAreNumberedByTheirPlaces) {
  EXPECT_EQ(Names("cpu,cpu,cpu", 4), NameList({"cpu:0", "cpu:1", "cpu:2"}));
}

TEST(DeviceList, AutoIsOneDeviceHoweverManyGpusThereAre) {
  EXPECT_EQ(Names("auto", 0), NameList({"cpu:0"}));
  EXPECT_EQ(Names("auto", 1), NameList({"cuda:0"}));
  EXPECT_EQ(Names("auto", 8), NameList({"cuda:0"}));
}

TEST(DeviceList, AllAreTheGpusOfTheProcess) {
  EXPECT_EQ(Names("cuda:all", 1), NameList({"cuda:0"}));
  EXPECT_EQ(Names("cuda:all", 3), NameList({"cuda:0", "cuda:1", "cuda:2"}));
}

TEST(DeviceList, OpeningSaysWhyThereIsNoGpuAtAll) {
  EXPECT_EQ(Names("cuda:all", 0), NameList({"cuda:0"}));
  EXPECT_EQ(Names("cuda:0,cuda:1", 0), NameList({"cuda:0", "cuda:1"}));
  if (runtime::CudaDeviceCount() > 0) GTEST_SKIP() << "there is one";
  for (const char* text : {"cuda", "cuda:all", "cuda:0,cuda:1"}) {
    const auto devices = OpenDevices(ParseDeviceList(text, 0).value(), {});
    EXPECT_THAT(std::string(devices.status().message()),
                AllOf(HasSubstr("device cuda:0: "),
                      ::testing::AnyOf(HasSubstr("cudaGetDeviceCount: CUDA driver version is "
                                                 "insufficient"),
                                       HasSubstr("no CUDA-capable device"),
                                       HasSubstr("this build has no CUDA"))));
  }
}

TEST(DeviceList, RefusalsNameWhatWasExpectedAndWhatWasThere) {
  const auto refuses = [](const std::string& text, const std::string& expected) {
    EXPECT_THAT(ParseDeviceList(text, 2),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(expected), HasSubstr("got \"" + text + "\""))));
  };
  refuses("cuda:1,cuda:1", "each device once (cuda:1 is there twice)");
  refuses("cuda,cuda:0", "each device once (cuda:0 is there twice)");
  refuses("cpu:1,cpu", "each device once (cpu:1 is there twice)");
  refuses("cpu,cuda:0", "GPUs or CPU devices, not both");
  refuses("cuda:0,auto", "\"auto\" alone");
  refuses("cuda:all,cuda:0", "\"cuda:all\" alone");
  for (const std::string text : {"", ",", "cuda:0,", "cuda:0, cuda:1", "tpu", "cuda:x"}) {
    refuses(text, "\"cuda:N\" with commas between");
  }
}

TEST(DeviceList, RefusesGpusThatAreNotThere) {
  EXPECT_THAT(
      ParseDeviceList("cuda:0,cuda:2", 2),
      StatusIs(absl::StatusCode::kNotFound, AllOf(HasSubstr("got \"cuda:2\" in \"cuda:0,cuda:2\""),
                                                  HasSubstr("can use 2 GPUs"))));
  EXPECT_THAT(ParseDeviceList("cuda:0,cuda:1", 1),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("can use 1 GPU")));
}

TEST(DeviceList, RefusesMoreDevicesThanAHostHas) {
  std::string text = "cpu";
  for (int i = 1; i < 16; ++i) text += ",cpu";
  EXPECT_EQ(Names(text, 0).size(), 16u);
  EXPECT_THAT(ParseDeviceList(text + ",cpu", 0),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("at most 16"), HasSubstr("17"))));
}

TEST(OpenDevices, GivesEachPoolsOfItsOwnAndTheFirstWhatIsPinnedAtTheStart) {
  runtime::DeviceOptions pools;
  pools.pinned_memory.slab_bytes = size_t{1} << 20;
  pools.pinned_memory.initial_bytes = size_t{1} << 20;
  ASSERT_OK_AND_ASSIGN(const std::vector<runtime::DeviceId> ids, ParseDeviceList("cpu,cpu", 0));
  ASSERT_OK_AND_ASSIGN(const auto devices, OpenDevices(ids, pools));
  ASSERT_EQ(devices.size(), 2u);
  EXPECT_EQ(devices[1]->id().ToString(), "cpu:1");
  EXPECT_EQ(devices[0]->pinned_memory_stats().reserved_bytes, size_t{1} << 20);
  EXPECT_EQ(devices[1]->pinned_memory_stats().reserved_bytes, 0u);
  ASSERT_OK_AND_ASSIGN(const auto block, devices[1]->AllocatePinned(1000));
  EXPECT_GT(devices[1]->pinned_memory_stats().allocated_bytes, 0u);
  EXPECT_EQ(devices[0]->pinned_memory_stats().allocated_bytes, 0u);
}

}  // namespace
}  // namespace cipherd::server
