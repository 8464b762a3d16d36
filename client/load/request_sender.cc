#include "client/load/request_sender.h"

#include <utility>

#include "absl/time/clock.h"

namespace cipherd::client {

RequestSender::RequestSender(const Workload& workload, const LoadOptions& options,
                             TimerQueue& timers)
    : workload_(workload), options_(options), timers_(timers), random_(options.seed) {}

RequestSender::Choice RequestSender::Choose() {
  absl::MutexLock lock(&mu_);
  Choice choice = {&workload_.Pick(random_), absl::InfiniteDuration()};
  if (std::bernoulli_distribution(options_.cancel_share)(random_)) {
    const double most = 1.5 * typical_seconds_.load(std::memory_order_relaxed);
    choice.cancel_after = absl::Seconds(std::uniform_real_distribution<double>(0, most)(random_));
  }
  return choice;
}

void RequestSender::Send(absl::Time due, Done done) {
  const auto [item, cancel_after] = Choose();
  const absl::Duration lag = absl::Now() - due;
  const auto shared_done = std::make_shared<Done>(std::move(done));
  const auto report = [this, item = item, due, lag,
                       shared_done](absl::StatusOr<EvaluationResult> result) {
    const Sample sample = MakeSample(*item, due, lag, result);
    if (sample.outcome != Outcome::kFailed) {
      (*shared_done)(sample, absl::ZeroDuration());
    } else {
      // As long as the daemon says, where it does.
      (*shared_done)(sample, RetryDelayOf(result.status()).value_or(options_.retry_delay));
    }
  };
  const absl::StatusOr<std::shared_ptr<EvaluationCall>> call =
      item->client->StartEvaluation({.program = item->session->program_ptr(),
                                     .key_set_id = item->session->key_set_id(),
                                     .request_id = "",
                                     .inputs = item->inputs},
                                    {.timeout = options_.deadline}, report);
  if (!call.ok()) {
    report(call.status());
    return;
  }
  if (cancel_after == absl::InfiniteDuration()) return;
  timers_.RunAfter(cancel_after, [call = std::weak_ptr<EvaluationCall>(*call)] {
    if (const std::shared_ptr<EvaluationCall> locked = call.lock()) locked->Cancel();
  });
}

Sample RequestSender::MakeSample(const WorkItem& item, absl::Time due, absl::Duration lag,
                                 const absl::StatusOr<EvaluationResult>& result) {
  Sample sample;
  sample.program = item.program;
  sample.due = due;
  sample.latency = absl::Now() - due;
  sample.lag = lag;
  if (!result.ok()) {
    sample.code = result.status().code();
    sample.reason = ReasonOf(result.status());
    sample.outcome = absl::IsCancelled(result.status()) ? Outcome::kCancelled : Outcome::kFailed;
    return sample;
  }
  const bool is_right =
      !item.reference.has_value() || HaveSameBytes(result->outputs, *item.reference);
  sample.outcome = is_right ? Outcome::kSucceeded : Outcome::kWrong;
  sample.sent_bytes = result->sent_bytes;
  sample.received_bytes = result->received_bytes;
  for (size_t i = 0; i < kStageCount; ++i) {
    sample.stage_seconds[i] = static_cast<float>((result->stage_times.*kStages[i].seconds)());
  }
  // Updates that cross lose one of them, which a running mean bears.
  const double typical = typical_seconds_.load(std::memory_order_relaxed);
  const double seconds = absl::ToDoubleSeconds(sample.latency - lag);
  typical_seconds_.store(typical + (seconds - typical) / 16, std::memory_order_relaxed);
  return sample;
}

}  // namespace cipherd::client
