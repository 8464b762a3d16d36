#include "proto/codec/error_detail.h"

#include "gtest/gtest.h"
#include "tests/codec/wire_values.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::codec {
namespace {

using ::cipherd::testing::IsRefusal;
using ::cipherd::testing::StatusIs;

TEST(ErrorDetailTest, ComesBackAsItWasAttached) {
  const absl::Status status = WithErrorDetail(absl::NotFoundError("no such program"),
                                              v1::ERROR_REASON_UNKNOWN_PROGRAM, "header.program");
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound, "no such program"));
  const auto detail = GetErrorDetail(status);
  ASSERT_TRUE(detail.has_value());
  EXPECT_EQ(detail->reason(), v1::ERROR_REASON_UNKNOWN_PROGRAM);
  EXPECT_EQ(detail->path(), "header.program");
}

TEST(ErrorDetailTest, TheLaterDetailReplacesTheEarlier) {
  const absl::Status status = WithErrorDetail(Refuse(v1::ERROR_REASON_PROTOCOL, "a", "text"),
                                              v1::ERROR_REASON_OVERLOADED, "b");
  EXPECT_EQ(GetErrorDetail(status)->reason(), v1::ERROR_REASON_OVERLOADED);
  EXPECT_EQ(GetErrorDetail(status)->path(), "b");
}

TEST(ErrorDetailTest, AnOkStatusStaysBare) {
  const absl::Status status = WithErrorDetail(absl::OkStatus(), v1::ERROR_REASON_PROTOCOL, "path");
  EXPECT_OK(status);
  EXPECT_FALSE(GetErrorDetail(status).has_value());
}

TEST(ErrorDetailTest, AForeignOrBrokenPayloadIsNoDetail) {
  EXPECT_FALSE(GetErrorDetail(absl::InternalError("bare")).has_value());
  absl::Status broken = absl::InternalError("broken");
  broken.SetPayload(absl::string_view(kErrorDetailTypeUrl.data(), kErrorDetailTypeUrl.size()),
                    absl::Cord("\xff\xff\xff"));
  EXPECT_FALSE(GetErrorDetail(broken).has_value());
}

TEST(ErrorDetailTest, RefusalsStartWithTheirPath) {
  EXPECT_THAT(Refuse(v1::ERROR_REASON_WRONG_CONTEXT, "inputs[0].context_id", "expected a, got b"),
              IsRefusal(absl::StatusCode::kInvalidArgument, v1::ERROR_REASON_WRONG_CONTEXT,
                        "inputs[0].context_id"));
  EXPECT_THAT(RefuseUnsupported("inputs[0].data.encoding", "expected a, got b"),
              IsRefusal(absl::StatusCode::kUnimplemented, v1::ERROR_REASON_UNSUPPORTED,
                        "inputs[0].data.encoding"));
}

}  // namespace
}  // namespace cipherd::codec
