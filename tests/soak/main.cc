// soak_test [--measure] [--seconds=N] [GoogleTest's flags]. See kUsage.
#include <cstdio>
#include <optional>
#include <string_view>

#include "absl/strings/numbers.h"
#include "core/base/allocator_policy.h"
#include "gtest/gtest.h"
#include "tests/soak/soak_options.h"

namespace cipherd::testing {
namespace {

constexpr char kUsage[] =
    "usage: soak_test [--measure] [--seconds=N] [GoogleTest's flags]\n"
    "\n"
    "A daemon under everything at once. Every run checks what holds on any machine, however busy:\n"
    "no result is wrong and nothing fails but by overload, deadline or cancellation, through\n"
    "reloads of programs, too; the books balance; pools are full again and as large as before; "
    "what\n"
    "is let in waits for no more results than the queue's bound; a bad request leaves at most "
    "1000\n"
    "bytes behind.\n"
    "\n"
    "  --seconds=N  of mixed load: 120, or 1200 to measure\n"
    "  --measure    also judges figures, on a machine that does nothing else: throughput under 64\n"
    "               clients at least 0.95 of that under 2; results within a deadline of 25 ms;\n"
    "               resident and device memory flat, their slope within noise after minute 5\n"
    "               (N from 600 on)\n";

constexpr double kLeastMeasuredSeconds = 600;

bool is_measurement = false;
std::optional<double> seconds;

// False for what is no flag of ours.
bool TakeFlag(std::string_view flag) {
  constexpr std::string_view kSeconds = "--seconds=";
  if (flag == "--measure") {
    is_measurement = true;
    return true;
  }
  double value = 0;
  if (!flag.starts_with(kSeconds) || !absl::SimpleAtod(flag.data() + kSeconds.size(), &value)) {
    return false;
  }
  seconds = value;
  return value > 0;
}

}  // namespace

absl::Duration SoakDuration() {
  return absl::Seconds(seconds.value_or(IsMeasurement() ? 1200 : 120));
}

bool IsMeasurement() { return is_measurement; }

}  // namespace cipherd::testing

int main(int argc, char** argv) {
  using namespace cipherd::testing;  // NOLINT: their own main
  cipherd::base::KeepLargeBlocks();
  ::testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    if (TakeFlag(argv[i])) continue;
    const bool is_help = std::string_view(argv[i]) == "--help";
    std::fputs(kUsage, is_help ? stdout : stderr);
    return is_help ? 0 : 2;
  }
  if (is_measurement && absl::ToDoubleSeconds(SoakDuration()) < kLeastMeasuredSeconds) {
    std::fputs("soak_test: --measure needs 600 seconds or more: the first 300 are warm-up\n",
               stderr);
    return 2;
  }
  return RUN_ALL_TESTS();
}
