#include "tests/soak/load_tally.h"

#include <cinttypes>
#include <cstdio>

#include "gtest/gtest.h"

namespace cipherd::testing {

using client::Outcome;
using client::Sample;

void LoadTally::Add(const std::vector<Sample>& samples) {
  for (const Sample& sample : samples) {
    ++ended_;
    switch (sample.outcome) {
      case Outcome::kSucceeded:
        ++succeeded_;
        break;
      case Outcome::kCancelled:
        ++cancelled_;
        break;
      case Outcome::kWrong:
        ++wrong_;
        break;
      case Outcome::kFailed:
        if (sample.code == absl::StatusCode::kDeadlineExceeded) {
          ++expired_;
        } else if (sample.reason == v1::ERROR_REASON_OVERLOADED) {
          ++refused_;
        } else {
          ++unexpected_;
          unexpected_code_ = sample.code;
        }
        break;
    }
  }
}

void LoadTally::Check() const {
  std::printf("%s: %" PRIu64 " requests: %" PRIu64 " right, %" PRIu64 " wrong, %" PRIu64
              " cancelled, %" PRIu64 " expired, %" PRIu64 " refused by overload, %" PRIu64
              " failed otherwise\n",
              name_.c_str(), ended_, succeeded_, wrong_, cancelled_, expired_, refused_,
              unexpected_);
  EXPECT_EQ(wrong_, 0u) << name_;
  EXPECT_EQ(unexpected_, 0u) << name_ << ": " << absl::StatusCodeToString(unexpected_code_);
}

}  // namespace cipherd::testing
