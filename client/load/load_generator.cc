#include "client/load/load_generator.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>
#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "client/load/arrivals.h"

namespace cipherd::client {
namespace {

constexpr absl::Duration kLongestRetryDelay = absl::Seconds(1);

// Each client sends its next request when it has the answer to the last.
class ClosedLoop final : public LoadGenerator {
 public:
  ClosedLoop(const Workload& workload, const LoadOptions& options, int client_count)
      : LoadGenerator(workload, options), client_count_(client_count) {
    for (int i = 0; i < client_count; ++i) SendNext(/*failure_count=*/0);
  }
  ~ClosedLoop() override { Stop(); }

  void Stop() override {
    is_stopping_.store(true);
    {
      absl::MutexLock lock(&clients_mu_);
      const auto all_have_ended = [this]() ABSL_SHARED_LOCKS_REQUIRED(clients_mu_) {
        return client_count_ == 0;
      };
      clients_mu_.Await(absl::Condition(&all_have_ended));
    }
    AwaitIdle();
  }

 private:
  // `failure_count`: in a row, of this client.
  void SendNext(int failure_count) {
    if (is_stopping_.load()) {
      absl::MutexLock lock(&clients_mu_);
      --client_count_;
      return;
    }
    Send(absl::Now(), [this, failure_count](absl::Duration retry_after) {
      if (retry_after == absl::ZeroDuration()) {
        SendNext(0);
        return;
      }
      const absl::Duration delay =
          std::min(retry_after * (1 << std::min(failure_count, 16)), kLongestRetryDelay);
      timers().RunAfter(std::max(delay, retry_after),
                        [this, failure_count] { SendNext(failure_count + 1); });
    });
  }

  std::atomic<bool> is_stopping_{false};
  absl::Mutex clients_mu_;
  int client_count_ ABSL_GUARDED_BY(clients_mu_);
};

// One thread sends what is due.
class OpenLoop final : public LoadGenerator {
 public:
  OpenLoop(const Workload& workload, const LoadOptions& options, double rate)
      : LoadGenerator(workload, options),
        max_in_flight_(options.max_in_flight),
        arrivals_(rate, options.distribution, options.seed),
        thread_([this] { KeepSchedule(); }) {}
  ~OpenLoop() override { Stop(); }

  void Stop() override {
    if (!is_stopping_.HasBeenNotified()) is_stopping_.Notify();
    if (thread_.joinable()) thread_.join();
    AwaitIdle();
  }

 private:
  void KeepSchedule() {
    const absl::Time start = absl::Now();
    while (true) {
      const absl::Time due = start + arrivals_.Next();
      if (is_stopping_.WaitForNotificationWithDeadline(due)) return;
      while (!AwaitRoom(max_in_flight_, absl::Now() + absl::Milliseconds(50))) {
        if (is_stopping_.HasBeenNotified()) return;
      }
      Send(due, [](absl::Duration) {});
    }
  }

  const int max_in_flight_;
  Arrivals arrivals_;
  absl::Notification is_stopping_;
  std::thread thread_;
};

}  // namespace

std::unique_ptr<LoadGenerator> LoadGenerator::Start(const Workload& workload,
                                                    const LoadOptions& options, double level) {
  if (options.mode == LoadMode::kConcurrency) {
    return std::make_unique<ClosedLoop>(workload, options, static_cast<int>(level));
  }
  return std::make_unique<OpenLoop>(workload, options, level);
}

void LoadGenerator::Send(absl::Time due, std::function<void(absl::Duration)> next) {
  {
    absl::MutexLock lock(&mu_);
    ++sent_count_;
    ++in_flight_;
  }
  sender_.Send(due,
               [this, next = std::move(next)](const Sample& sample, absl::Duration retry_after) {
                 {
                   absl::MutexLock lock(&mu_);
                   samples_.push_back(sample);
                 }
                 next(retry_after);
                 // The last touch: whoever waits for this may destroy the object.
                 absl::MutexLock lock(&mu_);
                 --in_flight_;
               });
}

std::vector<Sample> LoadGenerator::TakeSamples() {
  absl::MutexLock lock(&mu_);
  return std::exchange(samples_, {});
}

uint64_t LoadGenerator::sent_count() const {
  absl::MutexLock lock(&mu_);
  return sent_count_;
}

int LoadGenerator::in_flight() const {
  absl::MutexLock lock(&mu_);
  return in_flight_;
}

void LoadGenerator::AwaitIdle() {
  absl::MutexLock lock(&mu_);
  const auto is_idle = [this]() ABSL_SHARED_LOCKS_REQUIRED(mu_) { return in_flight_ == 0; };
  mu_.Await(absl::Condition(&is_idle));
}

bool LoadGenerator::AwaitRoom(int limit, absl::Time deadline) {
  absl::MutexLock lock(&mu_);
  const auto has_room = [this, limit]()
                            ABSL_SHARED_LOCKS_REQUIRED(mu_) { return in_flight_ < limit; };
  return mu_.AwaitWithDeadline(absl::Condition(&has_room), deadline);
}

}  // namespace cipherd::client
