// GoogleTest matchers for absl::Status and absl::StatusOr.
//
//   EXPECT_OK(stream->Synchronize());
//   ASSERT_OK_AND_ASSIGN(auto event, device->CreateEvent());
//   EXPECT_THAT(buffer.value(), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("closed")));
#pragma once

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace cipherd::testing {

inline const absl::Status& StatusOf(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusOf(const absl::StatusOr<T>& result) {
  return result.status();
}

MATCHER(IsOk, negation ? "is not OK" : "is OK") {
  *result_listener << "whose status is " << std::string(StatusOf(arg).ToString());
  return StatusOf(arg).ok();
}

MATCHER_P(StatusIs, code, "has status code " + absl::StatusCodeToString(code)) {
  *result_listener << "whose status is " << std::string(StatusOf(arg).ToString());
  return StatusOf(arg).code() == code;
}

MATCHER_P2(StatusIs, code, message, "has status code " + absl::StatusCodeToString(code) +
                                        " and a matching message") {
  const absl::Status& status = StatusOf(arg);
  *result_listener << "whose status is " << std::string(status.ToString());
  return status.code() == code &&
         ::testing::ExplainMatchResult(message, std::string(status.message()), result_listener);
}

}  // namespace cipherd::testing

#define EXPECT_OK(expression) EXPECT_THAT((expression), ::cipherd::testing::IsOk())
#define ASSERT_OK(expression) ASSERT_THAT((expression), ::cipherd::testing::IsOk())

#define CIPHERD_TEST_CONCAT_INNER(a, b) a##b
#define CIPHERD_TEST_CONCAT(a, b) CIPHERD_TEST_CONCAT_INNER(a, b)
#define CIPHERD_ASSERT_OK_AND_ASSIGN_INNER(result, lhs, expression) \
  auto result = (expression);                                       \
  ASSERT_TRUE(result.ok()) << result.status().ToString();           \
  lhs = *std::move(result)
#define ASSERT_OK_AND_ASSIGN(lhs, expression)                                              \
  CIPHERD_ASSERT_OK_AND_ASSIGN_INNER(CIPHERD_TEST_CONCAT(test_status_or_, __LINE__), lhs, \
                                     expression)
