// Protobuf wrote several lines to standard error for each string of a client's that was not UTF-8,
// past the daemon's log level: whoever could reach the port could fill the disk.
#include "cipherd/v1/evaluation.pb.h"
#include "gtest/gtest.h"
#include "server/logging.h"

namespace cipherd::server {
namespace {

TEST(ProtobufLogTest, TextThatIsNotUtf8CannotFillTheLog) {
  SetUpLogging("info");
  v1::EvaluationHeader header;
  ::testing::internal::CaptureStderr();
  // Field 1, a string of one byte.
  EXPECT_FALSE(header.ParseFromString("\x0a\x01\xff"));
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace cipherd::server
