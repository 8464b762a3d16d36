// The demo's client against a daemon with the deployed program.
#include "tests/integration/daemon_fixture.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::testing {
namespace {

using ::testing::HasSubstr;

using DemoTest = DaemonTest;

TEST_F(DemoTest, EveryArgMaxOfEncryptedImagesAgrees) {
  ASSERT_OK(StartDaemon(DeployedPrograms(), "fashion_mlp"));
  const ProcessResult result =
      RunProcess({CIPHERD_DEMO_BINARY, "--server", address(), "--images", "20", "--weights",
                  DeployedPrograms() + "/fashion_mlp/weights.safetensors"});
  EXPECT_EQ(result.exit_status, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("20 of 20"));
  EXPECT_EQ(StopDaemon(), 0);
}

}  // namespace
}  // namespace cipherd::testing
