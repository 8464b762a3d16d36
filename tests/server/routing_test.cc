// What a gateway has routed a call by, and what the message says.
#include <string>

#include "gtest/gtest.h"
#include "proto/codec/error_detail.h"
#include "proto/grpc_status/grpc_status.h"
#include "proto/grpc_status/transport.h"
#include "tests/server/service_fixture.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::server {
namespace {

using ::cipherd::testing::StatusIs;
using ::testing::HasSubstr;
using namespace server::testing;  // NOLINT: the test's own vocabulary

class RoutingTest : public ServiceTest {
 protected:
  absl::Status EvaluateRoutedBy(const std::string& routed_by) {
    const WireRequest request =
        MakeWireRequest("square_sum", alice_keys(), alice().Encrypt(TestSlots(1, 128)));
    v1::EvaluateRequest message;
    *message.mutable_header() = request.header;
    message.set_payload(request.payload);
    grpc::ClientContext context;
    if (!routed_by.empty()) context.AddMetadata(transport::kKeySetMetadata, routed_by);
    v1::EvaluateResponse response;
    return FromGrpcStatus(stub_->Evaluate(&context, message, &response));
  }
};

TEST_F(RoutingTest, AnEvaluationGoesWithTheSetThatItWasRoutedByOrWithNone) {
  EXPECT_OK(EvaluateRoutedBy(""));
  EXPECT_OK(EvaluateRoutedBy(alice_keys()));
}

TEST_F(RoutingTest, AnEvaluationThatWasRoutedByAnotherSetIsRefused) {
  for (const std::string& other : {std::string(64, 'a'), std::string("none")}) {
    const absl::Status refused = EvaluateRoutedBy(other);
    EXPECT_THAT(refused, StatusIs(absl::StatusCode::kInvalidArgument,
                                  HasSubstr(transport::kKeySetMetadata)));
    EXPECT_EQ(codec::GetErrorDetail(refused)->reason(), v1::ERROR_REASON_PROTOCOL);
  }
}

}  // namespace
}  // namespace cipherd::server
