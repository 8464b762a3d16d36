// A program that the engine had and the registry did not yet, or no longer: GetProgram answered OK
// with an empty description. It was told to be SERVING before it could be described, too:
// EngineProgramsTest.WhoeverIsToldThatAProgramIsReadyFindsWhatItsLoaderHasPublished.
#include <memory>

#include "client/client.h"
#include "gtest/gtest.h"
#include "proto/grpc_status/grpc_status.h"
#include "tests/server/engine/test_program.h"
#include "tests/server/service_fixture.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server {
namespace {

using namespace server::testing;  // NOLINT: the test's own vocabulary

// On the CPU device: the program that is loaded here computes on the host.
class UnpublishedProgramTest : public ServiceTest {
 protected:
  void SetUp() override {
    ServerOptions options = TestOptions(directory_.path());
    options.device.spec = "cpu";
    Start(options);
  }
};

TEST_F(UnpublishedProgramTest, IsUnavailableToEveryCall) {
  ASSERT_OK(server_->engine().AddProgram(std::make_shared<engine::testing::TestProgram>("half")));
  ASSERT_OK(server_->engine().LoadProgram("half"));
  v1::GetProgramRequest which;
  which.set_name("half");
  v1::GetProgramResponse description;
  grpc::ClientContext context;
  const absl::Status described = FromGrpcStatus(stub_->GetProgram(&context, which, &description));
  const WireRequest request =
      MakeWireRequest("half", alice_keys(), alice().Encrypt(TestSlots(1, 128)));
  v1::EvaluateResponse response;
  const absl::Status evaluated = FromGrpcStatus(EvaluateUnary(request, &response));
  for (const absl::Status& status : {described, evaluated}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status.ToString();
    EXPECT_EQ(client::ReasonOf(status), v1::ERROR_REASON_UNAVAILABLE);
  }
  ExpectGoodRequestSucceeds();
}

}  // namespace
}  // namespace cipherd::server
