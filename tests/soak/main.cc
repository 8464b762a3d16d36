// soak [--seconds=N] [GoogleTest's flags]
#include <cstdio>
#include <string_view>

#include "absl/strings/numbers.h"
#include "core/base/allocator_policy.h"
#include "gtest/gtest.h"
#include "tests/soak/soak_options.h"

namespace cipherd::testing {
namespace {

double soak_seconds = 60;

}  // namespace

absl::Duration SoakDuration() { return absl::Seconds(soak_seconds); }

}  // namespace cipherd::testing

int main(int argc, char** argv) {
  cipherd::base::KeepLargeBlocks();
  ::testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    std::string_view flag = argv[i];
    constexpr std::string_view kSeconds = "--seconds=";
    if (!flag.starts_with(kSeconds) ||
        !absl::SimpleAtod(argv[i] + kSeconds.size(), &cipherd::testing::soak_seconds)) {
      std::fprintf(stderr, "usage: %s [--seconds=N]\n", argv[0]);
      return 2;
    }
  }
  return RUN_ALL_TESTS();
}
