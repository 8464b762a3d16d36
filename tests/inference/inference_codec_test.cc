// Requests of the Open Inference Protocol as strangers may send them. Meant to run under
// AddressSanitizer and UBSan; what each refusal says is tested over a channel (tests/server).
#include "proto/inference/inference_codec.h"

#include <google/protobuf/stubs/logging.h>

#include <string>

#include "gtest/gtest.h"
#include "proto/codec/error_detail.h"
#include "tests/codec/mutants.h"
#include "tests/inference/infer_exchange.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::oip {
namespace {

using ::cipherd::testing::ForEachMutant;
using ::cipherd::testing::InferExchange;
using ::cipherd::testing::PayloadOf;
using value::ValueTree;

class InferenceCodecTest : public ::testing::Test {
 protected:
  const InferExchange exchange_;
  // Protobuf logs strings that are no UTF-8, of which there are many here.
  google::protobuf::LogSilencer silencer_;
};

TEST_F(InferenceCodecTest, InputsArriveInTheProgramsOrder) {
  ASSERT_OK_AND_ASSIGN(const ValueTree received, exchange_.Receive(exchange_.request));
  EXPECT_EQ(PayloadOf(received), PayloadOf(exchange_.values));
}

TEST_F(InferenceCodecTest, AMutantIsRefusedCleanlyOrMeansSomethingLawful) {
  int refused = 0, lawful = 0;
  ForEachMutant(exchange_.request.SerializeAsString(), [&](const std::string& mutant) {
    inference::ModelInferRequest request;
    if (!request.ParseFromString(mutant)) return;
    const absl::StatusOr<ValueTree> received = exchange_.Receive(request);
    if (received.ok()) {
      EXPECT_OK(exchange_.signature.Validate(*received));
      ++lawful;
      return;
    }
    ++refused;
    const auto detail = codec::GetErrorDetail(received.status());
    ASSERT_TRUE(detail.has_value()) << std::string(received.status().ToString());
    EXPECT_NE(detail->reason(), v1::ERROR_REASON_UNSPECIFIED);
    EXPECT_EQ(received.status().code(), absl::StatusCode::kInvalidArgument);
  });
  EXPECT_GT(refused, 1000);
  EXPECT_GT(lawful, 1000);
}

}  // namespace
}  // namespace cipherd::oip
