#include "proto/grpc_status/grpc_status.h"

#include <string>

#include "absl/strings/cord.h"
#include "cipherd/v1/evaluation.pb.h"
#include "cipherd/v1/status_details.pb.h"
#include "tests/testing/status_matchers.h"

namespace cipherd {
namespace {

constexpr char kTypeUrl[] = "type.googleapis.com/cipherd.v1.ErrorDetail";

absl::Status StatusWithDetail() {
  v1::ErrorDetail detail;
  detail.set_reason(v1::ERROR_REASON_MISSING_KEY);
  detail.set_path("keys[3]");
  absl::Status status = absl::FailedPreconditionError("keys[3]: expected rotation(8)");
  status.SetPayload(kTypeUrl, absl::Cord(detail.SerializeAsString()));
  return status;
}

TEST(GrpcStatusTest, EveryCodeSurvivesTheRoundTrip) {
  for (int code = 0; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code), code == 0 ? "" : "why");
    EXPECT_EQ(FromGrpcStatus(ToGrpcStatus(status)), status);
  }
}

TEST(GrpcStatusTest, DetailsSurviveTheRoundTrip) {
  const absl::Status status = StatusWithDetail();
  EXPECT_EQ(FromGrpcStatus(ToGrpcStatus(status)), status);
}

TEST(GrpcStatusTest, DetailsCarryCodeAndMessageForOtherLibraries) {
  v1::StatusDetails details;
  ASSERT_TRUE(details.ParseFromString(ToGrpcStatus(StatusWithDetail()).error_details()));
  EXPECT_EQ(details.code(), 9);
  EXPECT_EQ(details.message(), "keys[3]: expected rotation(8)");
  ASSERT_EQ(details.details_size(), 1);
  EXPECT_EQ(details.details(0).type_url(), kTypeUrl);
}

TEST(GrpcStatusTest, BrokenDetailsLeaveCodeAndMessage) {
  const grpc::Status status(grpc::StatusCode::NOT_FOUND, "no such program", "\xff\xff\xff");
  EXPECT_EQ(FromGrpcStatus(status), absl::NotFoundError("no such program"));
}

TEST(GrpcStatusTest, RepeatedDetailKeepsTheFirst) {
  v1::StatusDetails details;
  for (const char* value : {"first", "second"}) {
    google::protobuf::Any* any = details.add_details();
    any->set_type_url("type/x");
    any->set_value(value);
  }
  const grpc::Status status(grpc::StatusCode::INTERNAL, "m", details.SerializeAsString());
  EXPECT_EQ(FromGrpcStatus(status).GetPayload("type/x"), absl::Cord("first"));
}

}  // namespace
}  // namespace cipherd
