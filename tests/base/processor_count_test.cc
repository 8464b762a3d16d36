#include "core/base/processor_count.h"

#include <sched.h>

#include <thread>

#include "gtest/gtest.h"

namespace cipherd::base {
namespace {

TEST(ProcessorCountTest, PartsOfAProcessorAreRoundedUp) {
  EXPECT_EQ(ParseProcessorQuota("200000 100000\n"), 2);
  EXPECT_EQ(ParseProcessorQuota("150000 100000\n"), 2);
  EXPECT_EQ(ParseProcessorQuota("1000 100000\n"), 1);
  EXPECT_EQ(ParseProcessorQuota("9223372036854775807 1\n"), 2147483647);
}

TEST(ProcessorCountTest, WithoutAQuotaThereIsNone) {
  for (const char* text : {"max 100000\n", "", "200000", "0 100000", "200000 0", "-1 100000"}) {
    EXPECT_EQ(ParseProcessorQuota(text), std::nullopt) << text;
  }
}

TEST(ProcessorCountTest, IsBoundedByTheAffinity) {
  EXPECT_GE(ProcessorCount(), 1);
  std::thread([] {
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(sched_getcpu(), &own);
    ASSERT_EQ(sched_setaffinity(0, sizeof(own), &own), 0);
    EXPECT_EQ(ProcessorCount(), 1);
  }).join();
}

}  // namespace
}  // namespace cipherd::base
