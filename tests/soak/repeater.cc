#include "tests/soak/repeater.h"

#include <cstdio>
#include <utility>

#include "gtest/gtest.h"
#include "tests/testing/status_matchers.h"

namespace cipherd::testing {

Repeater::Repeater(std::string name, absl::Duration pause, std::function<absl::Status()> step)
    : name_(std::move(name)), thread_([this, pause, step = std::move(step)] {
        while (status_.ok() && !stop_.WaitForNotificationWithTimeout(pause)) {
          status_ = step();
          ++count_;
        }
      }) {}

void Repeater::Stop() {
  if (!thread_.joinable()) return;
  stop_.Notify();
  thread_.join();
  std::printf("%s: %d times\n", name_.c_str(), count_);
  EXPECT_OK(status_) << name_;
  EXPECT_GT(count_, 0) << name_;
}

}  // namespace cipherd::testing
